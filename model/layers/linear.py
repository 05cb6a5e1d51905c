"""Linear map without bias."""

import math

import torch
from torch import Tensor, nn


class Linear(nn.Module):
    """y = x Wᵀ.

    Args:
        d_in: size of the last axis of the input.
        d_out: size of the last axis of the output.

    `weight` is (d_out, d_in), drawn from N(0, 2 / (d_in + d_out)) cut at 3 standard deviations
    (Glorot & Bengio 2010, eq. 12, truncated).
    """

    def __init__(self, d_in: int, d_out: int):
        super().__init__()
        std = math.sqrt(2 / (d_in + d_out))
        self.weight = nn.Parameter(torch.empty(d_out, d_in))
        nn.init.trunc_normal_(self.weight, std=std, a=-3 * std, b=3 * std)

    def forward(self, x: Tensor) -> Tensor:
        return x @ self.weight.T  # (..., d_in) -> (..., d_out)
