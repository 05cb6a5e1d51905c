"""RMSNorm and LayerNorm."""

from dataclasses import dataclass, replace

import numpy as np

from explorer.analysis.norms import kinds
from explorer.explain.captured.linear import Copy, Linear
from explorer.explain.notation import factor, number
from explorer.explain.source import Source
from explorer.explain.working import ALL, Index, Working, take
from explorer.language import N_, look_up
from explorer.tracing.trace import Trace

NORM_LINES = {
    "rmsnorm": Source("model/layers/rmsnorm.py", "return ((x32 * inverse_rms)"),
    "layernorm": Source("model/layers/layernorm.py", "return F.layer_norm("),
}


@dataclass(frozen=True)
class Norm:
    """x / √(mean x² + ε) · g, or of LayerNorm (x − mean x) / √(var x + ε) · γ + β; or as the run has another there.

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
        where = np.arange(len(trace))[place[-1]]
        whole, of = self.x.working(trace, (*place, ALL)), kinds(trace, self.norm, where)
        x, sizes, kind = whole.value, whole.sizes, str(of.flat[0])  # the words are of one number
        gain, from_gain = take(trace, f"{self.norm}.weight", dim)
        inputs, shift = (*whole.inputs, from_gain), 0.0
        if (centres := (of == "layernorm")[..., None]).any():
            mean = x.mean(-1, keepdims=True)
            sizes = sizes + np.where(centres, np.abs(x).mean(-1, keepdims=True), 0.0)  # of the terms of the mean
        if (shifts := has_shift(trace, self.norm, where)).any():
            shift, from_shift = take(trace, f"{self.norm}.bias", dim)
            shift = np.where(shifts[..., None] if isinstance(dim, slice) else shifts, shift, 0.0)
            inputs = (*inputs, from_shift)
        divisor = root(trace, x, of)[..., None]
        value = (centred(x, of) / divisor)[..., dim] * gain + shift

        def numbers() -> str:
            top, under, plus = number(x[dim]), "", ""
            if kind == "layernorm":
                top = f"({top} − {factor(mean.item())})"
            if kind != "none":
                under = f" / √({number(mean_square(x, of))} + {number(trace.config.norm_eps)})"
            if shifts.any():
                plus = f" + {factor(shift)}"
            return f"{self.symbol} = {top}{under} · {factor(gain)}{plus} = {number(value)}"

        symbols = look_up(WRITTEN[kind, bool(shifts.flat[0])], symbol=self.symbol)
        sizes = (sizes / divisor)[..., dim] * np.abs(gain) + np.abs(shift)
        return Working(symbols, numbers, value, inputs, sizes)


@dataclass(frozen=True)
class OverHeads:
    """A norm of the vectors of all heads together, (T, H d), split into heads after it."""

    whole: Norm
    heads: int
    source: Source

    def working(self, trace: Trace, at: Index) -> Working:
        head, token, dim = at
        width = len(trace.weights[f"{self.whole.norm}.weight"]) // self.heads
        if not isinstance(head, slice):
            first = head * width
            dim = slice(first, first + width) if isinstance(dim, slice) else first + dim
        found = self.whole.working(trace, (token, dim))
        if not isinstance(head, slice):
            return found
        value, sizes = (x.reshape(*x.shape[:-1], self.heads, width) for x in (found.value, found.sizes))
        return replace(found, value=np.moveaxis(value, -2, 0), sizes=np.moveaxis(sizes, -2, 0))


# Kind of norm, and whether a shift is added -> the formula
WRITTEN = {
    ("rmsnorm", False): N_("{symbol} = x / √(mean x² + ε) · gain"),
    ("rmsnorm", True): N_("{symbol} = x / √(mean x² + ε) · γ + β"),
    ("layernorm", False): N_("{symbol} = (x − mean x) / √(var x + ε) · gain"),
    ("layernorm", True): N_("{symbol} = (x − mean x) / √(var x + ε) · γ + β"),
    ("none", False): N_("{symbol} = x · gain"),
}


def has_shift(trace: Trace, name: str, position: int | np.ndarray) -> np.ndarray:
    """Whether a norm of the run adds β, () booleans at a position, or (T,) at each of several."""
    return np.asarray(kinds(trace, name, position) != "none") & (f"{name}.bias" in trace.weights)


def mean_square(x: np.ndarray, kinds: np.ndarray) -> np.ndarray:
    """Over the last axis, mean x², or of LayerNorm var x."""
    x = centred(x, kinds)
    return (x * x).mean(-1)


def root(trace: Trace, x: np.ndarray, kinds: np.ndarray) -> np.ndarray:
    """What kinds of norms divide vectors by: (…, D) -> (…)."""
    return np.where(kinds == "none", 1.0, np.sqrt(mean_square(x, kinds) + trace.config.norm_eps))


def centred(x: np.ndarray, kinds: np.ndarray) -> np.ndarray:
    """Vectors as LayerNorm divides them, less their mean; as they are where the norm is another."""
    where = (kinds == "layernorm")[..., None]
    return np.where(where, x - x.mean(-1, keepdims=True), x) if where.any() else x


def divided(trace: Trace, part: np.ndarray, x: np.ndarray, name: str, position: int) -> np.ndarray:
    """A part of x (D,), or x itself, as a norm of the run, by its name, divides x at a position, before gains."""
    of = kinds(trace, name, position)
    return centred(part, of) / root(trace, x, of)[..., None]
