from functools import partial

import pytest
import torch
import torch.nn.functional as F

from model.layers.feed_forward import GEGLU, KERNELS, FeedForward, SwiGLU, gelu, gelu_tanh, relu, relu2, sigmoid, silu
from model.layers.transformer_block import FEED_FORWARDS
from tests.subtest_loops import subtest_each

ACTIVATIONS = {
    "relu": F.relu,
    "relu2": lambda x: F.relu(x) ** 2,
    "gelu": F.gelu,
    "gelu_tanh": partial(F.gelu, approximate="tanh"),
}


@subtest_each("bias", [False, True], ids=["without bias", "with bias"])
@subtest_each("name", ACTIVATIONS)
def test_feed_forward_projects_up_activates_and_projects_down(name, bias):
    ffn, x = FEED_FORWARDS[name](6, 10, bias), 2 * torch.randn(2, 3, 6)
    for parameter in ffn.parameters():
        parameter.data.normal_()  # biases start at 0
    up, down = ffn.up_proj, ffn.down_proj
    expected = F.linear(ACTIVATIONS[name](F.linear(x, up.weight, up.bias)), down.weight, down.bias)
    torch.testing.assert_close(ffn(x), expected, atol=1e-5, rtol=1e-5)
    assert (up.bias is not None) == (down.bias is not None) == bias


def test_taps_record_intermediate_steps():
    ffn, x, recorded = FeedForward(torch.relu, 6, 10, bias=True), torch.randn(2, 3, 6), {}
    for name in ("up", "hidden", "out"):
        getattr(ffn, name).register_forward_hook(lambda tap, inputs, output, name=name: recorded.update({name: output}))
    y = ffn(x)
    assert torch.equal(recorded["up"], ffn.up_proj(x))
    assert torch.equal(recorded["hidden"], recorded["up"].relu())
    assert torch.equal(recorded["out"], y)


def test_dropout_acts_on_output_in_training_mode():
    ffn, x = FeedForward(torch.relu, 6, 10, bias=True, dropout=0.5), torch.randn(200, 6)
    ffn.down_proj.bias.data.fill_(100)  # otherwise a ReLU layer can output 0 by itself
    assert ((ffn.train()(x) == 0).float().mean() - 0.5).abs() < 0.05
    assert (ffn.eval()(x) != 0).all()


def test_swiglu_matches_formula():
    ffn, x = SwiGLU(6, 10), torch.randn(2, 3, 6)
    w1, w3, w2 = ffn.gate_proj.weight, ffn.up_proj.weight, ffn.down_proj.weight
    torch.testing.assert_close(ffn(x), F.linear(F.silu(F.linear(x, w1)) * F.linear(x, w3), w2))


def test_swiglu_dropout_acts_on_output_in_training_mode():
    ffn, x = SwiGLU(6, 10, dropout=0.5), torch.randn(200, 6)
    assert ((ffn.train()(x) == 0).float().mean() - 0.5).abs() < 0.05
    assert (ffn.eval()(x) != 0).all()


def test_geglu_matches_formula():
    ffn, x = GEGLU(6, 10), torch.randn(2, 3, 6)
    w1, w3, w2 = ffn.gate_proj.weight, ffn.up_proj.weight, ffn.down_proj.weight
    gate = F.gelu(F.linear(x, w1), approximate="tanh")
    torch.testing.assert_close(ffn(x), F.linear(gate * F.linear(x, w3), w2))


REFERENCES = {
    sigmoid: torch.sigmoid,
    relu: F.relu,
    silu: F.silu,
    gelu: F.gelu,
    gelu_tanh: partial(F.gelu, approximate="tanh"),
}


@pytest.mark.parametrize(("ours", "reference"), REFERENCES.items(), ids=lambda f: getattr(f, "__name__", ""))
def test_activations_and_gradients_match_pytorch(ours, reference):
    x = torch.cat([torch.linspace(-30, 30, 602), torch.tensor([-1e4, 1e4])])  # not 0, where ReLU has no slope
    ours_in, reference_in = x.clone().requires_grad_(), x.clone().requires_grad_()
    ours_out, reference_out = ours(ours_in), reference(reference_in)
    torch.testing.assert_close(ours_out, reference_out, atol=1e-6, rtol=1e-5)
    ours_out.sum().backward()
    reference_out.sum().backward()
    torch.testing.assert_close(ours_in.grad, reference_in.grad, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_sigmoid_of_large_numbers_does_not_overflow(dtype):
    x = torch.tensor([-1e4, 0, 1e4], dtype=dtype)
    assert sigmoid(x).tolist() == [0, 0.5, 1]


def test_relu_of_0_is_0():
    assert relu(torch.zeros(1)) == 0


def test_gelu_and_tanh_approximation_differ_slightly():
    x = torch.linspace(-6, 6, 1001)
    difference = (gelu(x) - gelu_tanh(x)).abs().max()
    assert 1e-4 < difference < 1e-3


@pytest.mark.parametrize(("name", "kernel"), KERNELS.items())
def test_kernels_match_formulas(name, kernel):
    formula = {"relu": relu, "relu2": relu2, "silu": silu, "gelu": gelu, "gelu_tanh": gelu_tanh}[name]
    x = torch.linspace(-12, 12, 1001)
    torch.testing.assert_close(kernel(x), formula(x), atol=1e-6, rtol=1e-5)
