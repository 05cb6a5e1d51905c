import pytest
import torch

from model.layers.positions import ROTATIONS, RotaryPositionalEmbedding, rotate_adjacent, rotate_half_split

THETA, D_HEAD, CONTEXT = 10000.0, 8, 64


@pytest.fixture
def rope():
    return RotaryPositionalEmbedding(THETA, D_HEAD)


def apply_rope(rope, x, position: int, rotate=rotate_adjacent):
    """Rotate the vectors x (..., d), all by the angles of one position."""
    cos, sin = rope(torch.tensor([position]))
    return rotate(x[..., None, :], cos, sin)[..., 0, :]


def rotation_matrix(rope, position: int):
    """Return R^m, the rotation at a position as a (d, d) matrix: its columns are the rotated unit vectors."""
    return apply_rope(rope, torch.eye(D_HEAD), position).T


def test_angles_are_position_times_power_of_theta(rope):
    angles = []
    rope.angles.register_forward_hook(lambda tap, inputs, output: angles.append(output))
    positions = torch.arange(CONTEXT)
    cos, sin = rope(positions)
    expected = torch.tensor([[m * THETA ** (-2 * i / D_HEAD) for i in range(D_HEAD // 2)] for m in range(CONTEXT)])
    torch.testing.assert_close(angles[0], expected)
    torch.testing.assert_close(cos, expected.cos())
    torch.testing.assert_close(sin, expected.sin())


def test_adjacent_dimensions_rotate_together(rope):
    x = torch.zeros(D_HEAD)
    x[2] = 1  # the first dimension of pair 1, which rotates by θ^(-2/8) = 0.1 per position
    y = torch.zeros(D_HEAD)
    y[2], y[3] = torch.cos(torch.tensor(0.5)), torch.sin(torch.tensor(0.5))
    torch.testing.assert_close(apply_rope(rope, x, 5), y)


def test_position_0_is_not_rotated(rope):
    x = torch.randn(3, D_HEAD)
    torch.testing.assert_close(apply_rope(rope, x, 0), x)


@pytest.mark.parametrize("rotate", ROTATIONS.values(), ids=ROTATIONS.keys())
def test_rotation_keeps_norms(rope, rotate):
    x = torch.randn(3, D_HEAD)
    for position in (1, 17, 63):
        y = apply_rope(rope, x, position, rotate)
        torch.testing.assert_close(y.norm(dim=-1), x.norm(dim=-1))
        assert (y - x).norm() > 0.1


@pytest.mark.parametrize("rotate", ROTATIONS.values(), ids=ROTATIONS.keys())
def test_scores_depend_only_on_position_difference(rope, rotate):
    q, k = torch.randn(2, D_HEAD)
    position_pairs = [(m, n) for m in (3, 20, 40) for n in (3, 7, 24, 44)]
    score = {(m, n): apply_rope(rope, q, m, rotate) @ apply_rope(rope, k, n, rotate) for m, n in position_pairs}
    torch.testing.assert_close(score[3, 7], score[20, 24])
    torch.testing.assert_close(score[3, 7], score[40, 44])
    assert abs(score[3, 7] - score[3, 24]) > 0.1


@pytest.mark.parametrize(("m", "n"), [(0, 5), (3, 3), (10, 42)])
def test_two_rotations_combine_to_difference(rope, m, n):
    torch.testing.assert_close(
        rotation_matrix(rope, m).T @ rotation_matrix(rope, n), rotation_matrix(rope, n - m), atol=1e-5, rtol=1e-5
    )


def test_positions_may_have_batch_axis(rope):
    cos, sin = rope(torch.arange(6))
    cos_batch, sin_batch = rope(torch.arange(6).expand(2, 6))
    torch.testing.assert_close(cos_batch, cos.expand(2, 6, D_HEAD // 2))
    torch.testing.assert_close(sin_batch, sin.expand(2, 6, D_HEAD // 2))


def test_odd_head_width_is_refused():
    with pytest.raises(ValueError, match="d_head must be even, got 7"):
        RotaryPositionalEmbedding(THETA, 7)


def test_rope_has_no_weights(rope):
    assert dict(rope.state_dict()) == {}


def test_half_split_pairs_are_half_width_apart(rope):
    x, y = torch.zeros(2, D_HEAD)
    x[1] = 1  # pair 1 is (1, 5) and rotates by 0.1 per position
    y[1], y[5] = torch.cos(torch.tensor(0.5)), torch.sin(torch.tensor(0.5))
    torch.testing.assert_close(apply_rope(rope, x, 5, rotate_half_split), y)


def test_half_split_is_adjacent_with_permuted_dimensions(rope):
    x, (cos, sin) = torch.randn(2, 5, D_HEAD), rope(torch.arange(5))
    order = torch.tensor([0, 4, 1, 5, 2, 6, 3, 7])  # pairs (i, i + 4) side by side
    torch.testing.assert_close(rotate_half_split(x, cos, sin)[..., order], rotate_adjacent(x[..., order], cos, sin))


@pytest.mark.parametrize("layout", ROTATIONS)
def test_batch_positions_rotate_by_their_own_angles(rope, layout):
    x, positions = torch.randn(2, 3, D_HEAD), torch.tensor([[5, 0, 63], [7, 7, 2]])
    together = ROTATIONS[layout](x, *rope(positions))
    for b, t in torch.cartesian_prod(torch.arange(2), torch.arange(3)).tolist():
        single = apply_rope(rope, x[b, t], positions[b, t].item(), ROTATIONS[layout])
        torch.testing.assert_close(together[b, t], single)
