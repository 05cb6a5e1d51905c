"""Feed-forward layers: two-layer, SwiGLU and GEGLU, with their activation functions."""

import math
from collections.abc import Callable
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from model.layers.basic_layers import Dropout, Linear, Tap


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


class FeedForward(nn.Module):
    """Two-layer feed-forward: down(f(up x)), or f(x W₁ + b₁) W₂ + b₂ (Vaswani et al. 2017, eq. 2, where f is ReLU).

    (..., D) -> (..., D), through a hidden layer of F = `d_ff` neurons.
    """

    def __init__(
        self,
        activation: Callable[[Tensor], Tensor],
        d_model: int,
        d_ff: int,
        bias: bool = False,
        dropout: float = 0.0,
    ):
        super().__init__()
        self.activation = activation
        self.up_proj = Linear(d_model, d_ff, bias)
        self.down_proj = Linear(d_ff, d_model, bias)
        self.dropout = Dropout(dropout)
        self.up, self.hidden, self.out = Tap(), Tap(), Tap()

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.hidden(self.activation(self.up(self.up_proj(x))))  # (..., F)
        return self.out(self.dropout(self.down_proj(hidden)))  # (..., D)


class SwiGLU(nn.Module):
    """SwiGLU feed-forward: down(SiLU(gate x) ⊙ up x), or W2(SiLU(W1 x) ⊙ W3 x) in Shazeer 2020, eq. 6.

    (..., D) -> (..., D), through a hidden layer of F = `d_ff` neurons.
    """

    activation = staticmethod(KERNELS["silu"])

    def __init__(self, d_model: int, d_ff: int, bias: bool = False, dropout: float = 0.0):
        super().__init__()
        self.gate_proj = Linear(d_model, d_ff, bias)
        self.up_proj = Linear(d_model, d_ff, bias)
        self.down_proj = Linear(d_ff, d_model, bias)
        self.dropout = Dropout(dropout)
        self.gate_pre, self.gate, self.up, self.hidden, self.out = Tap(), Tap(), Tap(), Tap(), Tap()

    def forward(self, x: Tensor) -> Tensor:
        gate_pre = self.gate_pre(self.gate_proj(x))  # (..., F)
        gate = self.gate(self.activation(gate_pre))
        up = self.up(self.up_proj(x))
        hidden = self.hidden(gate * up)
        return self.out(self.dropout(self.down_proj(hidden)))  # (..., D)


class GEGLU(SwiGLU):
    """GEGLU feed-forward: down(GELU(gate x) ⊙ up x) (Shazeer 2020, eq. 6), with GELU's approximation by tanh.

    (..., D) -> (..., D), through a hidden layer of F = `d_ff` neurons.
    """

    activation = staticmethod(KERNELS["gelu_tanh"])
