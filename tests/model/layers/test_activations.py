from functools import partial

import pytest
import torch
import torch.nn.functional as F

from model.layers.feed_forward import KERNELS, gelu, gelu_tanh, relu, relu2, sigmoid, silu

REFERENCES = {
    sigmoid: torch.sigmoid,
    relu: F.relu,
    silu: F.silu,
    gelu: F.gelu,
    gelu_tanh: partial(F.gelu, approximate="tanh"),
}


@pytest.mark.parametrize(("ours", "reference"), REFERENCES.items(), ids=lambda f: getattr(f, "__name__", ""))
def test_values_and_slopes_agree_with_torch(ours, reference):
    x = torch.cat([torch.linspace(-30, 30, 602), torch.tensor([-1e4, 1e4])])  # not 0, where ReLU has no slope
    ours_in, reference_in = x.clone().requires_grad_(), x.clone().requires_grad_()
    ours_out, reference_out = ours(ours_in), reference(reference_in)
    torch.testing.assert_close(ours_out, reference_out, atol=1e-6, rtol=1e-5)
    ours_out.sum().backward()
    reference_out.sum().backward()
    torch.testing.assert_close(ours_in.grad, reference_in.grad, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_the_sigmoid_of_large_numbers_does_not_overflow(dtype):
    x = torch.tensor([-1e4, 0, 1e4], dtype=dtype)
    assert sigmoid(x).tolist() == [0, 0.5, 1]


def test_relu_is_zero_at_zero():
    assert relu(torch.zeros(1)) == 0


def test_the_two_gelus_differ_by_less_than_a_thousandth():
    x = torch.linspace(-6, 6, 1001)
    difference = (gelu(x) - gelu_tanh(x)).abs().max()
    assert 1e-4 < difference < 1e-3


@pytest.mark.parametrize(("name", "kernel"), KERNELS.items())
def test_the_kernels_are_those_of_the_formulas(name, kernel):
    formula = {"relu": relu, "relu2": relu2, "silu": silu, "gelu": gelu, "gelu_tanh": gelu_tanh}[name]
    x = torch.linspace(-12, 12, 1001)
    torch.testing.assert_close(kernel(x), formula(x), atol=1e-6, rtol=1e-5)
