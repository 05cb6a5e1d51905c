import pytest
import torch

from model.layers.softmax import softmax


@pytest.mark.parametrize("dim", [-1, 0, 1])
def test_agrees_with_torch(dim):
    x = 5 * torch.randn(3, 4, 5)
    torch.testing.assert_close(softmax(x, dim), torch.softmax(x, dim))


def test_large_numbers_do_not_overflow_and_masked_ones_get_nothing():
    probabilities = softmax(torch.tensor([1e4, 1e4, -torch.inf]))
    torch.testing.assert_close(probabilities, torch.tensor([0.5, 0.5, 0.0]))
