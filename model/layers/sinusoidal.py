"""Sinusoidal positions."""

import torch
from torch import Tensor

from model.layers.position_table import FixedPositionTable


class SinusoidalPositionalEmbedding(FixedPositionTable):
    """Sinusoidal position vectors, to be added to the tokens' embeddings.

    Dimension 2i at position m is sin(m / 10000²ⁱᐟᴰ), dimension 2i + 1 is cos of the same angle (Vaswani et al.
    2017, §3.5).

    Args:
        context_length: number of positions.
        d_model: width of the vectors, even.

    Raises:
        ValueError: `d_model` is odd, so that a sine has no cosine.
    """

    def __init__(self, context_length: int, d_model: int):
        super().__init__(context_length, d_model)
        if d_model % 2:
            raise ValueError(f"sinusoidal positions pair sines with cosines: d_model must be even, got {d_model}")
        self.d_model = d_model
        self.fill()

    def rows(self, positions: Tensor) -> Tensor:
        exponents = torch.arange(0, self.d_model, 2).to(positions) / self.d_model  # (D / 2,)
        angles = torch.outer(positions, 10000**-exponents)  # (C, D / 2)
        return torch.stack((angles.sin(), angles.cos()), dim=-1).flatten(-2)  # (C, D)

    def forward(self, positions: Tensor) -> Tensor:
        return self.table[positions]  # (..., T) -> (..., T, D)
