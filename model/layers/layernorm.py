"""Layer normalisation."""

import torch
from torch import Tensor, nn


class LayerNorm(nn.Module):
    """(x - mean(x)) / √(var(x) + ε) · γ + β, over the last axis (Ba et al. 2016, eq. 4); var divides by D.

    `weight` is the gain γ, (d_model,), initially 1; `bias` is β, (d_model,), initially 0. Mean and variance are taken
    in float32 whatever the input's precision.
    """

    def __init__(self, d_model: int, eps: float = 1e-5):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model))

    def forward(self, x: Tensor) -> Tensor:
        x32 = x.float()
        centred = x32 - x32.mean(-1, keepdim=True)
        inverse_std = torch.rsqrt(centred.square().mean(-1, keepdim=True) + self.eps)  # (..., 1)
        return (centred * inverse_std).to(x.dtype) * self.weight + self.bias
