"""RMSNorm and LayerNorm."""

from dataclasses import dataclass

import numpy as np

from explorer.explain.captured.linear import Copy, Linear
from explorer.explain.notation import factor, number
from explorer.explain.source import Source
from explorer.explain.working import ALL, Index, Working, take
from explorer.language import _
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
        x, sizes, divisor = whole.value, whole.sizes, root(trace, whole.value)[..., None]
        gain, from_gain = take(trace, f"{self.norm}.weight", dim)
        value, inputs = (centred(trace, x) / divisor)[..., dim] * gain, (*whole.inputs, from_gain)

        def under_root() -> str:
            return f"√({number(mean_square(trace, x))} + {number(trace.config.norm_eps)})"

        if trace.config.norm == "rmsnorm":
            return Working(
                _("{symbol} = x / √(mean x² + ε) · gain", symbol=self.symbol),
                lambda: f"{self.symbol} = {number(x[dim])} / {under_root()} · {factor(gain)} = {number(value)}",
                value,
                inputs,
                (sizes / divisor)[..., dim] * np.abs(gain),
            )
        shift, from_shift = take(trace, f"{self.norm}.bias", dim)
        mean = x.mean(-1, keepdims=True)
        value, sizes = value + shift, sizes + np.abs(mean)
        return Working(
            _("{symbol} = (x − mean x) / √(var x + ε) · γ + β", symbol=self.symbol),
            lambda: (
                f"{self.symbol} = ({number(x[dim])} − {factor(mean.item())}) / {under_root()} · "
                f"{factor(gain)} + {factor(shift)} = {number(value)}"
            ),
            value,
            (*inputs, from_shift),
            (sizes / divisor)[..., dim] * np.abs(gain) + np.abs(shift),
        )


def mean_square(trace: Trace, x: np.ndarray) -> np.ndarray:
    """Over the last axis, mean x², or of LayerNorm var x."""
    return x.var(-1) if trace.config.norm == "layernorm" else (x * x).mean(-1)


def root(trace: Trace, x: np.ndarray) -> np.ndarray:
    """What the model's kind of norm divides vectors by: (…, D) -> (…)."""
    return np.sqrt(mean_square(trace, x) + trace.config.norm_eps)


def centred(trace: Trace, x: np.ndarray) -> np.ndarray:
    """Vectors as LayerNorm divides them, less their mean; as they are where the model's norm is another."""
    return x - x.mean(-1, keepdims=True) if trace.config.norm == "layernorm" else x


def divided(trace: Trace, part: np.ndarray, x: np.ndarray) -> np.ndarray:
    """A part of x (…, D), or x itself, as the model's kind of norm divides x, before gains."""
    return centred(trace, part) / root(trace, x)[..., None]
