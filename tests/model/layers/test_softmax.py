import pytest
import torch

from model.layers.attention import softmax


@pytest.mark.parametrize("dim", [-1, 0, 1])
def test_agrees_with_torch(dim):
    x = 5 * torch.randn(3, 4, 5)
    torch.testing.assert_close(softmax(x, dim), torch.softmax(x, dim))


def test_large_numbers_do_not_overflow_and_masked_ones_get_nothing():
    probabilities = softmax(torch.tensor([1e4, 1e4, -torch.inf]))
    torch.testing.assert_close(probabilities, torch.tensor([0.5, 0.5, 0.0]))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_rows_masked_throughout_are_zero(dtype):
    x = torch.tensor([[0.0, 1.0, -torch.inf], [-torch.inf] * 3], dtype=dtype)
    probabilities = softmax(x)
    torch.testing.assert_close(probabilities[0], torch.softmax(x[0], -1))
    assert (probabilities[1] == 0).all()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_numbers_of_16_bits_are_rounded_once(dtype):
    x = (3 * torch.randn(200, 300)).to(dtype)
    exact = torch.softmax(x.double(), -1)
    half_unit = torch.finfo(dtype).eps / 2
    assert ((softmax(x) - exact).abs() <= 1.01 * half_unit * exact.clamp(min=torch.finfo(dtype).tiny)).all()
