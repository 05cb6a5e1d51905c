import pytest
import torch

from model.layers.rope import RotaryPositionalEmbedding, rotate_adjacent

THETA, D_HEAD, CONTEXT = 10000.0, 8, 64


@pytest.fixture
def rope():
    return RotaryPositionalEmbedding(THETA, D_HEAD, CONTEXT)


def rotated(rope, x, position: int):
    """The vectors x (..., d), all as if they stood at the position."""
    cos, sin = rope(torch.tensor([position]))
    return rotate_adjacent(x[..., None, :], cos, sin)[..., 0, :]


def matrix(rope, position: int):
    """R^m, the rotation at a position as a (d, d) matrix: its columns are the rotated unit vectors."""
    return rotated(rope, torch.eye(D_HEAD), position).T


def test_angles_are_position_times_a_power_of_theta(rope):
    angles = []
    rope.angles.register_forward_hook(lambda tap, inputs, output: angles.append(output))
    positions = torch.arange(CONTEXT)
    cos, sin = rope(positions)
    expected = torch.tensor([[m * THETA ** (-2 * i / D_HEAD) for i in range(D_HEAD // 2)] for m in range(CONTEXT)])
    torch.testing.assert_close(angles[0], expected)
    torch.testing.assert_close(cos, expected.cos())
    torch.testing.assert_close(sin, expected.sin())


def test_adjacent_dimensions_turn_together(rope):
    x = torch.zeros(D_HEAD)
    x[2] = 1  # the first dimension of pair 1, which turns by θ^(-2/8) = 0.1 a position
    y = torch.zeros(D_HEAD)
    y[2], y[3] = torch.cos(torch.tensor(0.5)), torch.sin(torch.tensor(0.5))
    torch.testing.assert_close(rotated(rope, x, 5), y)


def test_position_zero_turns_nothing(rope):
    x = torch.randn(3, D_HEAD)
    torch.testing.assert_close(rotated(rope, x, 0), x)


def test_norms_are_kept(rope):
    x = torch.randn(3, D_HEAD)
    for position in (1, 17, 63):
        torch.testing.assert_close(rotated(rope, x, position).norm(dim=-1), x.norm(dim=-1))
        assert (rotated(rope, x, position) - x).norm() > 0.1


def test_scores_depend_only_on_the_difference_of_positions(rope):
    q, k = torch.randn(2, D_HEAD)
    score = {(m, n): rotated(rope, q, m) @ rotated(rope, k, n) for m in (3, 20, 40) for n in (3, 7, 24, 44)}
    torch.testing.assert_close(score[3, 7], score[20, 24])
    torch.testing.assert_close(score[3, 7], score[40, 44])
    assert abs(score[3, 7] - score[3, 24]) > 0.1


@pytest.mark.parametrize(("m", "n"), [(0, 5), (3, 3), (10, 42)])
def test_two_rotations_combine_to_that_of_the_difference(rope, m, n):
    torch.testing.assert_close(matrix(rope, m).T @ matrix(rope, n), matrix(rope, n - m), atol=1e-5, rtol=1e-5)


def test_positions_may_have_a_batch_axis(rope):
    cos, sin = rope(torch.arange(6))
    cos_batch, sin_batch = rope(torch.arange(6).expand(2, 6))
    torch.testing.assert_close(cos_batch, cos.expand(2, 6, D_HEAD // 2))
    torch.testing.assert_close(sin_batch, sin.expand(2, 6, D_HEAD // 2))


def test_an_odd_head_width_has_no_pairs():
    with pytest.raises(ValueError, match="d_head must be even, got 7"):
        RotaryPositionalEmbedding(THETA, 7, CONTEXT)


def test_the_table_is_no_weight(rope):
    assert dict(rope.state_dict()) == {}
