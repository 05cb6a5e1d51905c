"""SwiGLU feed-forward."""

from torch import Tensor, nn

from model.layers.activations import KERNELS
from model.layers.dropout import Dropout
from model.layers.linear import Linear
from model.tap import Tap


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
