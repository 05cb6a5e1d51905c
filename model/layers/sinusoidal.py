"""Sinusoidal positions."""

import torch
from torch import Tensor, nn


class SinusoidalPositionalEmbedding(nn.Module):
    """Position m -> a vector of sines and cosines of slower and slower waves, to be added to the token's embedding.

    Dimension 2i is sin(m / 10000²ⁱᐟᴰ), dimension 2i + 1 is cos of the same (Vaswani et al. 2017, §3.5).

    Args:
        context_length: number of positions.
        d_model: width of the vectors, even.

    Raises:
        ValueError: `d_model` is odd, so that a sine has no cosine.
    """

    def __init__(self, context_length: int, d_model: int):
        super().__init__()
        if d_model % 2:
            raise ValueError(f"sinusoidal positions pair sines with cosines: d_model must be even, got {d_model}")
        exact = {"dtype": torch.float64, "device": "cpu"}  # not every device has float64
        frequencies = 10000 ** (-torch.arange(0, d_model, 2, **exact) / d_model)  # (D / 2,)
        angles = torch.outer(torch.arange(context_length, **exact), frequencies)  # (C, D / 2)
        table = torch.stack((angles.sin(), angles.cos()), dim=-1).flatten(-2)  # (C, D)
        self.register_buffer("table", table.float(), persistent=False)

    def forward(self, positions: Tensor) -> Tensor:
        return self.table[positions]  # (..., T) -> (..., T, D)
