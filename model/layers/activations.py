"""Elementwise activation functions. Each returns the shape of `x`."""

import math
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor


def sigmoid(x: Tensor) -> Tensor:
    """σ(x) = 1 / (1 + e⁻ˣ), as (1 + tanh(x / 2)) / 2, in which nothing overflows."""
    return (1 + torch.tanh(x / 2)) / 2


def relu(x: Tensor) -> Tensor:
    """max(x, 0). Nair & Hinton 2010."""
    return x.clamp(min=0)


def relu2(x: Tensor) -> Tensor:
    """max(x, 0)². So et al. 2021, arXiv:2109.08668."""
    return relu(x).square()


def silu(x: Tensor) -> Tensor:
    """SiLU (swish): x · σ(x) = x / (1 + e⁻ˣ). Elfwing et al. 2017."""
    return x * torch.sigmoid(x)


def gelu(x: Tensor) -> Tensor:
    """x · Φ(x), Φ the distribution function of N(0, 1): x/2 · (1 + erf(x / √2)). Hendrycks & Gimpel 2016."""
    return x / 2 * (1 + torch.erf(x / math.sqrt(2)))


def gelu_tanh(x: Tensor) -> Tensor:
    """GELU's approximation, GPT-2's: x/2 · (1 + tanh(√(2/π) · (x + 0.044715 x³))). Hendrycks & Gimpel 2016, §2."""
    return x / 2 * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


# PyTorch's kernels of the formulas above, to which a test holds them: one pass over memory instead of several.
KERNELS = {
    "relu": torch.relu,
    "relu2": lambda x: torch.relu(x).square(),
    "silu": F.silu,
    "gelu": F.gelu,
    "gelu_tanh": partial(F.gelu, approximate="tanh"),
}
