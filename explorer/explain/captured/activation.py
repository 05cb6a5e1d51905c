"""The feed-forward's activation function."""

from dataclasses import dataclass

import numpy as np

from explorer.analysis.feed_forward import ACTIVATIONS
from explorer.explain.captured.linear import short
from explorer.explain.notation import number
from explorer.explain.source import Source
from explorer.explain.working import Index, Working, take
from explorer.tracing.trace import Trace


@dataclass(frozen=True)
class Activation:
    """f(x) of every element, f one of `ACTIVATIONS`."""

    symbol: str
    x: str
    kind: str
    source: Source

    def working(self, trace: Trace, at: Index) -> Working:
        name, function = ACTIVATIONS[self.kind]
        x, read = take(trace, self.x, *at)
        value = function(x)
        return Working(
            f"{self.symbol} = {name}({short(self.x)}), {WRITTEN[self.kind]}",
            lambda: f"{self.symbol} = {name}({number(x)}) = {number(value)}",
            value,
            (read,),
            SIZES.get(self.kind, np.abs)(x),
        )


SIZES = {"relu2": np.square}  # of what rounding takes a share of, where it is not x
GELU_TANH = "GELU(x) ≈ x/2 · (1 + tanh(√(2/π) · (x + 0.044715 x³)))"
WRITTEN = {
    "swiglu": "SiLU(x) = x / (1 + e^−x)",
    "geglu": GELU_TANH,
    "relu": "ReLU(x) = max(x, 0)",
    "relu2": "ReLU²(x) = max(x, 0)²",
    "gelu": "GELU(x) = x/2 · (1 + erf(x / √2))",
    "gelu_tanh": GELU_TANH,
}
