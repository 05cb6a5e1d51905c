"""Root-mean-square normalisation."""

import torch
from torch import Tensor, nn


class RMSNorm(nn.Module):
    """RMSNorm over the last axis: x / √(mean(x²) + ε) · g (Zhang & Sennrich 2019, eq. 4).

    `weight` is the gain g, (d_model,), initially 1. The mean is computed in float32 whatever the input's
    precision; the product with g has g's type, which may be finer than x's.
    """

    def __init__(self, d_model: int, eps: float = 1e-5):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(d_model))

    def forward(self, x: Tensor) -> Tensor:
        x32 = x.float()
        inverse_rms = torch.rsqrt(x32.square().mean(-1, keepdim=True) + self.eps)  # (..., 1)
        return ((x32 * inverse_rms).to(self.weight.dtype) * self.weight).to(x.dtype)
