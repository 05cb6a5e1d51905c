"""The feed-forward's activation function."""

from dataclasses import dataclass

import numpy as np

from explorer.analysis.feed_forward import ACTIVATIONS
from explorer.explain.calculation import Calculation, Index, read_input
from explorer.explain.captured.linear import short_tap_name
from explorer.explain.notation import format_number
from explorer.explain.source_line import SourceLine
from explorer.tracing.trace import Trace


@dataclass(frozen=True)
class ActivationFormula:
    """Activation f(x) of every element, f one of `ACTIVATIONS`."""

    symbol: str
    x: str
    kind: str
    source: SourceLine

    def calculate(self, trace: Trace, index: Index) -> Calculation:
        name, function = ACTIVATIONS[self.kind]
        x, read = read_input(trace, self.x, *index)
        value = function(x)
        return Calculation(
            f"{self.symbol} = {name}({short_tap_name(self.x)}), {ACTIVATION_FORMULAS[self.kind]}",
            lambda: f"{self.symbol} = {name}({format_number(x)}) = {format_number(value)}",
            value,
            (read,),
            SIZES.get(self.kind, np.abs)(x),
        )


SIZES = {"relu2": np.square}  # of what rounding takes a share of, where it is not x
GELU_TANH = "GELU(x) ≈ x/2 · (1 + tanh(√(2/π) · (x + 0.044715 x³)))"
ACTIVATION_FORMULAS = {
    "swiglu": "SiLU(x) = x / (1 + e^−x)",
    "geglu": GELU_TANH,
    "relu": "ReLU(x) = max(x, 0)",
    "relu2": "ReLU²(x) = max(x, 0)²",
    "gelu": "GELU(x) = x/2 · (1 + erf(x / √2))",
    "gelu_tanh": GELU_TANH,
}
