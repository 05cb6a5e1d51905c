"""Elementwise activation functions, which keep the shape of `x`."""

import math
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor


def sigmoid(x: Tensor) -> Tensor:
    """Sigmoid: σ(x) = 1 / (1 + e⁻ˣ), as (1 + tanh(x / 2)) / 2, in which nothing overflows."""
    return (1 + torch.tanh(x / 2)) / 2


def relu(x: Tensor) -> Tensor:
    """ReLU: max(x, 0). Nair & Hinton 2010."""
    return x.clamp(min=0)


def relu2(x: Tensor) -> Tensor:
    """Squared ReLU: max(x, 0)². So et al. 2021, arXiv:2109.08668."""
    return relu(x).square()


def silu(x: Tensor) -> Tensor:
    """SiLU (swish): x · σ(x) = x / (1 + e⁻ˣ). Elfwing et al. 2017."""
    return x * torch.sigmoid(x)


def gelu(x: Tensor) -> Tensor:
    """GELU: x · Φ(x) = x/2 · (1 + erf(x / √2)), Φ the CDF of N(0, 1). Hendrycks & Gimpel 2016."""
    return x / 2 * (1 + torch.erf(x / math.sqrt(2)))


def gelu_tanh(x: Tensor) -> Tensor:
    """GELU's tanh approximation, as in GPT-2: x/2 · (1 + tanh(√(2/π) · (x + 0.044715 x³))). Hendrycks & Gimpel 2016."""
    return x / 2 * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


# PyTorch's kernels of the formulas above (a test compares them): one pass over memory instead of several.
KERNELS = {
    "relu": torch.relu,
    "relu2": lambda x: torch.relu(x).square(),
    "silu": F.silu,
    "gelu": F.gelu,
    "gelu_tanh": partial(F.gelu, approximate="tanh"),
}
