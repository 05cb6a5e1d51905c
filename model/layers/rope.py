"""Rotary position embedding."""

import torch
from torch import Tensor

from model.layers.position_table import FixedPositionTable
from model.layers.rotary_frequencies import rotary_attention_factors, rotary_frequencies
from model.rope_scaling import RopeScaling
from model.tap import Tap


class RotaryPositionalEmbedding(FixedPositionTable):
    """Rotation of each pair of dimensions of a query or key by an angle that grows with its position.

    Pair i of a vector at position m is rotated by the angle m · θ⁻²ⁱᐟʳ, r = d if all dimensions are rotated, so
    that the product of a rotated query and a rotated key depends on the two positions only through their
    difference (Su et al. 2021, eq. 34).

    Args:
        theta: the base θ; larger means slower rotation.
        d_head: width of a head, even.
        context_length: number of positions.
        scaling: of the frequencies for longer contexts.
        rotary_dim: r, number of rotated dimensions; None: all.

    Raises:
        ValueError: `d_head` is odd, so that it has no pairs.
    """

    def __init__(
        self,
        theta: float,
        d_head: int,
        context_length: int,
        scaling: RopeScaling | None = None,
        rotary_dim: int | None = None,
    ):
        super().__init__(context_length, d_head // 2)
        if d_head % 2:
            raise ValueError(f"RoPE rotates pairs of dimensions: d_head must be even, got {d_head}")
        self.theta, self.d_head, self.scaling, self.rotary_dim = theta, d_head, scaling, rotary_dim
        self.angles = Tap()
        self.fill()

    def frequencies(self, theta: float | None = None) -> Tensor:
        """Return radians per position (F,) in float64, with F = d_head / 2.

        Args:
            theta: a base in place of the model's own.
        """
        return rotary_frequencies(theta or self.theta, self.d_head, self.scaling, self.rotary_dim)

    def rows(self, positions: Tensor) -> Tensor:
        frequencies = self.frequencies()
        return torch.outer(positions, frequencies)  # (C, F), radians

    def fill(self, device: torch.device | None = None) -> None:
        super().fill(device)
        self.scales = None  # (F,) where turned pairs are multiplied as well
        if self.scaling and self.scaling.attention_factor != 1:
            self.scales = rotary_attention_factors(self.d_head, self.scaling, self.rotary_dim).to(self.table)

    def forward(self, positions: Tensor) -> tuple[Tensor, Tensor]:
        """Return cosines and sines (..., T, F) of the angles of integer positions (..., T), times `scales`."""
        angles = self.angles(self.table[positions])  # (..., T, F), radians
        cos, sin = angles.cos(), angles.sin()
        return (cos, sin) if self.scales is None else (cos * self.scales, sin * self.scales)


def rotate_adjacent(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotate the pairs (x₀, x₁), (x₂, x₃), … of the last axis: (..., T, d) with (..., T, d/2) -> (..., T, d).

    If x has fewer bits than the cosines and sines, only the result is rounded.
    """
    a, b = x[..., 0::2], x[..., 1::2]
    pairs = torch.stack((a * cos - b * sin, a * sin + b * cos), dim=-1)  # (..., T, F, 2)
    return pairs.flatten(-2).to(x.dtype)  # (..., T, d)


def rotate_half_split(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotate the pairs (xᵢ, xᵢ₊₍d/2₎), as GPT-NeoX and Hugging Face's Llama do; shapes as in `rotate_adjacent`."""
    a, b = x.chunk(2, dim=-1)
    return torch.cat((a * cos - b * sin, a * sin + b * cos), dim=-1).to(x.dtype)


ROTATIONS = {"adjacent": rotate_adjacent, "half_split": rotate_half_split}
