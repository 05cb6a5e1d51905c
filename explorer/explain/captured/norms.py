"""RMSNorm and LayerNorm."""

from dataclasses import dataclass

import numpy as np

from explorer.explain.captured.linear import Copy, Linear
from explorer.explain.source import Source
from explorer.explain.working import Working, factor, number, take, values
from explorer.tracing.trace import Trace

NORM_LINES = {
    "rmsnorm": Source("model/layers/rmsnorm.py", "return (x32 * inverse_rms)"),
    "layernorm": Source("model/layers/layernorm.py", "return F.layer_norm("),
}


@dataclass(frozen=True)
class Norm:
    """x / √(mean x² + ε) · g, or of LayerNorm (x − mean x) / √(var x + ε) · γ + β.

    Attributes:
        x: what is normalised; a linear map's result where that was not captured itself.
        norm: its name, whose weight and bias are used.
    """

    symbol: str
    x: Copy | Linear
    norm: str
    source: Source

    @property
    def names(self) -> tuple[str, ...]:
        return *self.x.names, f"{self.norm}.weight"

    def array(self, trace: Trace) -> np.ndarray:
        x = self.x.array(trace)
        y = divided(trace, x, x) * values(trace, f"{self.norm}.weight")
        return y + values(trace, f"{self.norm}.bias") if f"{self.norm}.bias" in trace.weights else y

    def sizes(self, trace: Trace) -> np.ndarray:
        x, sizes = self.x.array(trace), self.x.sizes(trace)
        if trace.config.norm == "layernorm":
            sizes = sizes + np.abs(x.mean(-1, keepdims=True))
        sizes = sizes / np.sqrt(mean_square(trace, x) + trace.config.norm_eps)[..., None]
        sizes *= np.abs(values(trace, f"{self.norm}.weight"))
        return sizes + np.abs(values(trace, f"{self.norm}.bias")) if f"{self.norm}.bias" in trace.weights else sizes

    def working(self, trace: Trace, index: tuple[int, ...]) -> Working:
        *place, dim = index
        x, inputs = self.x.vector(trace, tuple(place))
        gain, from_gain = take(trace, f"{self.norm}.weight", dim)
        squares, eps = mean_square(trace, x), trace.config.norm_eps
        value = float(divided(trace, x, x)[dim] * gain)
        inputs = (*inputs, from_gain)
        if trace.config.norm == "rmsnorm":
            root = f"√({number(squares)} + {number(eps)})"
            symbols = f"{self.symbol} = x / √(mean x² + ε) · gain"
            return Working(
                symbols, f"{self.symbol} = {number(x[dim])} / {root} · {factor(gain)} = {number(value)}", value, inputs
            )
        shift, from_shift = take(trace, f"{self.norm}.bias", dim)
        value += float(shift)
        symbols = f"{self.symbol} = (x − mean x) / √(var x + ε) · γ + β"
        numbers = (
            f"{self.symbol} = ({number(x[dim])} − {factor(x.mean())}) / √({number(squares)} + {number(eps)}) · "
            f"{factor(gain)} + {factor(shift)} = {number(value)}"
        )
        return Working(symbols, numbers, value, (*inputs, from_shift))


def mean_square(trace: Trace, x: np.ndarray) -> np.ndarray:
    """Over the last axis, mean x², or of LayerNorm var x."""
    return x.var(-1) if trace.config.norm == "layernorm" else (x * x).mean(-1)


def divided(trace: Trace, parts: np.ndarray, x: np.ndarray) -> np.ndarray:
    """x, or a part of it (…, D), as the model's kind of norm divides x, before gains: of LayerNorm less its mean."""
    if trace.config.norm == "layernorm":
        parts = parts - parts.mean(-1, keepdims=True)
    return parts / np.sqrt(mean_square(trace, x) + trace.config.norm_eps)[..., None]
