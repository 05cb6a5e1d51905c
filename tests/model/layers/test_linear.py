import math

import pytest
import torch

from model.layers.linear import Linear


def test_is_the_product_with_the_transposed_weight():
    linear, x = Linear(5, 7), torch.randn(2, 3, 5)
    torch.testing.assert_close(linear(x), x @ linear.weight.T)
    assert linear.weight.shape == (7, 5)
    assert [name for name, _ in linear.named_parameters()] == ["weight"]


@pytest.mark.parametrize(("d_in", "d_out"), [(300, 200), (50, 1200)])
def test_starts_from_a_normal_distribution_of_variance_two_over_fan_in_plus_fan_out_cut_at_three_sigma(d_in, d_out):
    weight = Linear(d_in, d_out).weight.detach() / math.sqrt(2 / (d_in + d_out))
    assert 2.9 < weight.abs().max() <= 3.0001
    assert abs(weight.mean()) < 0.02
    assert weight.std().item() == pytest.approx(0.98658, rel=0.015)  # of a standard normal cut at 3
    assert (weight.abs() < 1).float().mean().item() == pytest.approx(0.68269 / 0.99730, abs=0.01)


def test_a_bias_starts_at_zero_and_is_added():
    linear, x = Linear(5, 7, bias=True), torch.randn(2, 3, 5)
    assert torch.equal(linear.bias, torch.zeros(7))
    linear.bias.data = torch.randn(7)
    torch.testing.assert_close(linear(x), x @ linear.weight.T + linear.bias)
