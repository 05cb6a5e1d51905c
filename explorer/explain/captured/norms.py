"""RMSNorm and LayerNorm."""

from dataclasses import dataclass

import numpy as np

from explorer.explain.captured.linear import Copy, Linear
from explorer.explain.notation import factor, number
from explorer.explain.source import Source
from explorer.explain.working import ALL, Index, Working, take
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

    def working(self, trace: Trace, at: Index) -> Working:
        *place, dim = at
        whole = self.x.working(trace, (*place, ALL))
        x, sizes = whole.value, whole.sizes
        gain, from_gain = take(trace, f"{self.norm}.weight", dim)
        squares, eps = mean_square(trace, x), trace.config.norm_eps
        value, inputs = divided(trace, x, x)[..., dim] * gain, (*whole.inputs, from_gain)
        if trace.config.norm == "rmsnorm":
            return Working(
                f"{self.symbol} = x / √(mean x² + ε) · gain",
                lambda: (
                    f"{self.symbol} = {number(x[dim])} / √({number(squares)} + {number(eps)}) · {factor(gain)} "
                    f"= {number(value)}"
                ),
                value,
                inputs,
                over_root(trace, sizes, x)[..., dim] * np.abs(gain),
            )
        shift, from_shift = take(trace, f"{self.norm}.bias", dim)
        value, sizes = value + shift, sizes + np.abs(x.mean(-1, keepdims=True))
        return Working(
            f"{self.symbol} = (x − mean x) / √(var x + ε) · γ + β",
            lambda: (
                f"{self.symbol} = ({number(x[dim])} − {factor(x.mean())}) / √({number(squares)} + {number(eps)}) · "
                f"{factor(gain)} + {factor(shift)} = {number(value)}"
            ),
            value,
            (*inputs, from_shift),
            over_root(trace, sizes, x)[..., dim] * np.abs(gain) + np.abs(shift),
        )


def mean_square(trace: Trace, x: np.ndarray) -> np.ndarray:
    """Over the last axis, mean x², or of LayerNorm var x."""
    return x.var(-1) if trace.config.norm == "layernorm" else (x * x).mean(-1)


def over_root(trace: Trace, parts: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Parts of x (…, D), or x itself, divided by what the model's kind of norm divides x by."""
    return parts / np.sqrt(mean_square(trace, x) + trace.config.norm_eps)[..., None]


def divided(trace: Trace, parts: np.ndarray, x: np.ndarray) -> np.ndarray:
    """x, or a part of it (…, D), as the model's kind of norm divides x, before gains: of LayerNorm less its mean."""
    if trace.config.norm == "layernorm":
        parts = parts - parts.mean(-1, keepdims=True)
    return over_root(trace, parts, x)
