"""Rotary position embedding."""

import torch
from torch import Tensor, nn

from model.tap import Tap


class RotaryPositionalEmbedding(nn.Module):
    """Rotate each adjacent pair of dimensions of a query or key by an angle that grows with its position.

    Pair i of a vector at position m turns by the angle m · θ⁻²ⁱᐟᵈ, so that the product of a rotated query and a
    rotated key depends on the two positions only through their difference (Su et al. 2021, eq. 34).

    Args:
        theta: the base θ; larger means slower rotation.
        d_head: width of a head, even.
        context_length: number of positions.

    Raises:
        ValueError: `d_head` is odd, so that it has no pairs.
    """

    def __init__(self, theta: float, d_head: int, context_length: int):
        super().__init__()
        if d_head % 2:
            raise ValueError(f"RoPE rotates pairs of dimensions: d_head must be even, got {d_head}")
        exact = {"dtype": torch.float64, "device": "cpu"}  # not every device has float64
        frequencies = theta ** (-torch.arange(0, d_head, 2, **exact) / d_head)  # (F,) with F = d_head / 2
        positions = torch.arange(context_length, **exact)
        self.register_buffer("table", torch.outer(positions, frequencies).float(), persistent=False)  # (C, F)
        self.angles = Tap()

    def forward(self, positions: Tensor) -> tuple[Tensor, Tensor]:
        """Integer positions (..., T) -> cosines and sines of their angles, each (..., T, F)."""
        angles = self.angles(self.table[positions])  # (..., T, F), radians
        return angles.cos(), angles.sin()


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotate the pairs (x₀, x₁), (x₂, x₃), … of the last axis: (..., T, d) with (T, d/2) -> (..., T, d)."""
    even, odd = x[..., 0::2], x[..., 1::2]
    rotated = torch.stack((even * cos - odd * sin, even * sin + odd * cos), dim=-1)  # (..., T, F, 2)
    return rotated.flatten(-2)
