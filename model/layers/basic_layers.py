"""Basic layers: linear map, token embedding, norms, dropout, and the hook point."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Linear(nn.Module):
    """Linear map y = x Wᵀ + b.

    Args:
        d_in: size of the last axis of the input.
        d_out: size of the last axis of the output.
        bias: whether there is a b; without, y = x Wᵀ.

    `weight` is (d_out, d_in), drawn from N(0, 2 / (d_in + d_out)) cut at 3 standard deviations
    (Glorot & Bengio 2010, eq. 12, truncated); `bias` is (d_out,), initially 0, or None.
    """

    def __init__(self, d_in: int, d_out: int, bias: bool = False):
        super().__init__()
        std = math.sqrt(2 / (d_in + d_out))
        self.weight = nn.Parameter(torch.empty(d_out, d_in))
        nn.init.trunc_normal_(self.weight, std=std, a=-3 * std, b=3 * std)
        self.bias = nn.Parameter(torch.zeros(d_out)) if bias else None

    def forward(self, x: Tensor) -> Tensor:
        return F.linear(x, self.weight, self.bias)  # x Wᵀ + b in one pass: (..., d_in) -> (..., d_out)


class Embedding(nn.Module):
    """Embedding table with one row per token id.

    `weight` is (vocab_size, d_model), drawn from N(0, 1) cut at 3.
    """

    def __init__(self, vocab_size: int, d_model: int):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(vocab_size, d_model))
        nn.init.trunc_normal_(self.weight, std=1.0, a=-3.0, b=3.0)

    def forward(self, token_ids: Tensor) -> Tensor:
        return self.weight[token_ids]  # (B, T) -> (B, T, D)


class Dropout(nn.Module):
    """Dropout: each element is 0 with probability p, the rest is scaled by 1 / (1 - p); identity in eval mode.

    Srivastava et al. 2014, in the "inverted" form that leaves inference untouched.
    """

    def __init__(self, p: float):
        super().__init__()
        self.p = p

    def forward(self, x: Tensor) -> Tensor:
        if not self.training or self.p == 0:
            return x
        keep = torch.rand_like(x) >= self.p
        return x * keep / (1 - self.p)


class Tap(nn.Module):
    """A hook point: the identity as a module, for a value that no other module returns.

    The attribute path to it is the value's name (`blocks.3.attn.pattern`), and a forward hook on it can read the
    value or, by returning another, change it.
    """

    def forward(self, x: Tensor) -> Tensor:
        return x

    @property
    def has_hooks(self) -> bool:
        """True if a forward hook is attached."""
        return bool(self._forward_hooks)


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
