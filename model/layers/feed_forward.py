"""Two-layer feed-forward."""

from collections.abc import Callable

from torch import Tensor, nn

from model.layers.dropout import Dropout
from model.layers.linear import Linear
from model.tap import Tap


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
