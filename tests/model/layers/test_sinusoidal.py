import math

import pytest
import torch

from model.layers.positions import SinusoidalPositionalEmbedding

D_MODEL, CONTEXT = 12, 600


@pytest.fixture
def positions():
    return SinusoidalPositionalEmbedding(D_MODEL)


@pytest.mark.parametrize("m", [0, 1, 7, 599])
def test_dimensions_are_sines_and_cosines_of_position(positions, m):
    waves = [(math.sin(m / 10000**e), math.cos(m / 10000**e)) for e in (2 * i / D_MODEL for i in range(D_MODEL // 2))]
    torch.testing.assert_close(positions(torch.tensor([m]))[0], torch.tensor(waves).flatten(), atol=1e-6, rtol=0)


@pytest.mark.parametrize("k", [1, 5, 100])
def test_shift_by_k_is_same_rotation_at_every_position(positions, k):
    """Each pair (sin, cos) at m + k is the pair at m rotated back by k times its frequency (Vaswani et al., §3.5)."""
    here, there = (positions(torch.arange(400) + shift).unflatten(-1, (-1, 2)) for shift in (0, k))
    angles = k * 10000 ** (-torch.arange(0, D_MODEL, 2) / D_MODEL)
    sin, cos = angles.sin(), angles.cos()
    rotated = torch.stack((here[..., 0] * cos + here[..., 1] * sin, here[..., 1] * cos - here[..., 0] * sin), dim=-1)
    torch.testing.assert_close(rotated, there, atol=1e-5, rtol=0)


def test_positions_may_have_batch_axis_and_any_order(positions):
    scattered = torch.tensor([[5, 0, 5], [599, 1, 2]])
    table = positions(torch.arange(CONTEXT))
    assert torch.equal(positions(scattered), table[scattered])


def test_odd_width_is_refused():
    with pytest.raises(ValueError, match="d_model must be even, got 7"):
        SinusoidalPositionalEmbedding(7)


def test_sinusoidal_table_is_not_in_state_dict(positions):
    assert dict(positions.state_dict()) == {}
    assert list(positions.parameters()) == []
