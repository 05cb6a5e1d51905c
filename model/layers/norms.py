"""Root-mean-square and layer normalisation, also of the vectors of all heads together."""

import torch
import torch.nn.functional as F
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


class NormOverHeadsMixin:
    """Mixin that applies a norm to the vectors of all heads together: (..., H, T, d) as vectors of width H d."""

    def forward(self, x: Tensor) -> Tensor:
        together = super().forward(x.transpose(-3, -2).flatten(-2))  # (..., T, H d)
        return together.unflatten(-1, (x.shape[-3], -1)).transpose(-3, -2)


class RMSNormOverHeads(NormOverHeadsMixin, RMSNorm):
    """RMSNorm of a token's queries, or keys, as one vector (OLMo 2: Walsh et al. 2025)."""


class LayerNormOverHeads(NormOverHeadsMixin, LayerNorm):
    """LayerNorm of a token's queries, or keys, as one vector."""


NORMS = {"rmsnorm": RMSNorm, "layernorm": LayerNorm}
QK_NORMS = {"head": NORMS, "all": {"rmsnorm": RMSNormOverHeads, "layernorm": LayerNormOverHeads}}
