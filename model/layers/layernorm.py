"""Layer normalisation."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn


def layer_norm(x: Tensor, gain: Tensor, shift: Tensor, eps: float) -> Tensor:
    """Layer normalisation over the last axis: (x - mean(x)) / √(var(x) + ε) · γ + β (Ba et al. 2016, eq. 4).

    γ and β are (D,); var divides by D. Mean and variance are computed in float32 whatever the precision of x.
    """
    x32 = x.float()
    centred = x32 - x32.mean(-1, keepdim=True)
    inverse_std = torch.rsqrt(centred.square().mean(-1, keepdim=True) + eps)  # (..., 1)
    return (centred * inverse_std).to(x.dtype) * gain + shift


class LayerNorm(nn.Module):
    """`layer_norm` with its parameters, by PyTorch's kernel, which takes one pass where the formula takes seven.

    `weight` is the gain γ, (d_model,), initially 1; `bias` is β, (d_model,), initially 0.
    """

    def __init__(self, d_model: int, eps: float = 1e-5):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model))

    def forward(self, x: Tensor) -> Tensor:
        return F.layer_norm(x, self.weight.shape, self.weight, self.bias, self.eps)
