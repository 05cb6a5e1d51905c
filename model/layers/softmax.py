"""Softmax."""

import torch
from torch import Tensor


def softmax(x: Tensor, dim: int = -1) -> Tensor:
    """Softmax along `dim`: exp(xᵢ - max x) / Σⱼ exp(xⱼ - max x); same shape as `x`.

    Subtracting the maximum changes nothing in the quotient and keeps exp from overflowing. Where everything is -∞,
    as in a row that is masked throughout, the result is 0. If x has fewer bits than float32, only the result is
    rounded.
    """
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    limits = torch.finfo(wide.dtype)
    exps = torch.exp(wide - wide.amax(dim, keepdim=True).clamp(min=limits.min))
    return (exps / exps.sum(dim, keepdim=True).clamp(min=limits.tiny)).to(x.dtype)
