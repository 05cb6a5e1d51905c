"""Softmax."""

import torch
from torch import Tensor


def softmax(x: Tensor, dim: int = -1) -> Tensor:
    """softmax(x)ᵢ = exp(xᵢ - max x) / Σⱼ exp(xⱼ - max x) along `dim`; same shape as `x`.

    Subtracting the maximum changes nothing in the quotient and keeps exp from overflowing.
    """
    exps = torch.exp(x - x.amax(dim, keepdim=True))
    return exps / exps.sum(dim, keepdim=True)
