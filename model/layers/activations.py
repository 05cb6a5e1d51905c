"""Elementwise activation functions."""

import torch
from torch import Tensor


def silu(x: Tensor) -> Tensor:
    """SiLU (swish): x · σ(x) = x / (1 + e⁻ˣ). Elfwing et al. 2017; same shape as `x`."""
    return x * torch.sigmoid(x)
