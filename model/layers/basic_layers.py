"""Basic layers: linear map, token embedding, dropout, and the hook point."""

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
