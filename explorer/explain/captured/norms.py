"""Formulas of RMSNorm and LayerNorm."""

from dataclasses import dataclass, replace

import numpy as np

from explorer.explain.captured.formulas import CopyFormula, LinearLayerFormula
from explorer.explain.derivation import ALL, Calculation, Index, read_input
from explorer.explain.notation import format_factor, format_number
from explorer.explain.source_code import SourceLine
from explorer.interventions import active_norm_replacements
from explorer.interventions.intervention import is_active
from explorer.tracing.trace import Trace
from explorer.translations import N_, translate

NORM_LINES = {
    "rmsnorm": SourceLine("model/layers/norms.py", "return ((x32 * inverse_rms)"),
    "layernorm": SourceLine("model/layers/norms.py", "return F.layer_norm("),
}


@dataclass(frozen=True)
class NormFormula:
    """RMSNorm x / √(mean x² + ε) · g, or LayerNorm (x − mean x) / √(var x + ε) · γ + β.

    Interventions may replace the kind of norm.

    Attributes:
        x: the input; the result of a linear map if it was not captured itself.
        norm: name of the norm, whose weight and bias are used.
    """

    symbol: str
    x: CopyFormula | LinearLayerFormula
    norm: str
    source: SourceLine

    def calculate(self, trace: Trace, index: Index) -> Calculation:
        *leading, dim = index
        positions = np.arange(len(trace))[leading[-1]]
        source, kinds_by_position = self.x.calculate(trace, (*leading, ALL)), norm_kinds(trace, self.norm, positions)
        x, sizes, kind = (
            source.value,
            source.sizes,
            str(kinds_by_position.flat[0]),
        )  # only the texts use it, for a single position
        gain, from_gain = read_input(trace, f"{self.norm}.weight", dim)
        inputs, bias = (*source.inputs, from_gain), 0.0
        if (is_layernorm := (kinds_by_position == "layernorm")[..., None]).any():
            mean = x.mean(-1, keepdims=True)
            sizes = sizes + np.where(is_layernorm, np.abs(x).mean(-1, keepdims=True), 0.0)  # of the terms of the mean
        if (has_biases := has_bias(trace, self.norm, positions)).any():
            bias, from_bias = read_input(trace, f"{self.norm}.bias", dim)
            bias = np.where(has_biases[..., None] if isinstance(dim, slice) else has_biases, bias, 0.0)
            inputs = (*inputs, from_bias)
        divisor = norm_denominator(trace, x, kinds_by_position)[..., None]
        value = (subtract_mean(x, kinds_by_position) / divisor)[..., dim] * gain + bias

        def numbers() -> str:
            top, under, plus = format_number(x[dim]), "", ""
            if kind == "layernorm":
                top = f"({top} − {format_factor(mean.item())})"
            if kind != "none":
                mean_square = format_number(mean_square_or_variance(x, kinds_by_position))
                under = f" / √({mean_square} + {format_number(trace.config.norm_eps)})"
            if has_biases.any():
                plus = f" + {format_factor(bias)}"
            return f"{self.symbol} = {top}{under} · {format_factor(gain)}{plus} = {format_number(value)}"

        symbols = translate(NORM_FORMULAS[kind, bool(has_biases.flat[0])], symbol=self.symbol)
        sizes = (sizes / divisor)[..., dim] * np.abs(gain) + np.abs(bias)
        return Calculation(symbols, numbers, value, inputs, sizes)


@dataclass(frozen=True)
class AllHeadsNormFormula:
    """A norm over the concatenated vectors of all heads, (T, H d), split into heads afterwards."""

    norm_formula: NormFormula
    heads: int
    source: SourceLine

    def calculate(self, trace: Trace, index: Index) -> Calculation:
        head, token, dim = index
        width = len(trace.weights[f"{self.norm_formula.norm}.weight"]) // self.heads
        if not isinstance(head, slice):
            first = head * width
            dim = slice(first, first + width) if isinstance(dim, slice) else first + dim
        calculation = self.norm_formula.calculate(trace, (token, dim))
        if not isinstance(head, slice):
            return calculation
        value, sizes = (x.reshape(*x.shape[:-1], self.heads, width) for x in (calculation.value, calculation.sizes))
        return replace(calculation, value=np.moveaxis(value, -2, 0), sizes=np.moveaxis(sizes, -2, 0))


# Kind of norm, and whether a shift is added -> the formula
NORM_FORMULAS = {
    ("rmsnorm", False): N_("{symbol} = x / √(mean x² + ε) · gain"),
    ("rmsnorm", True): N_("{symbol} = x / √(mean x² + ε) · γ + β"),
    ("layernorm", False): N_("{symbol} = (x − mean x) / √(var x + ε) · gain"),
    ("layernorm", True): N_("{symbol} = (x − mean x) / √(var x + ε) · γ + β"),
    ("none", False): N_("{symbol} = x · gain"),
}


def has_bias(trace: Trace, name: str, position: int | np.ndarray) -> np.ndarray:
    """Return whether a norm of the run adds β: () booleans at a position, (T,) at several."""
    return np.asarray(norm_kinds(trace, name, position) != "none") & (f"{name}.bias" in trace.weights)


def mean_square_or_variance(x: np.ndarray, kinds: np.ndarray) -> np.ndarray:
    """Return the mean of x² over the last axis, or the variance for LayerNorm."""
    x = subtract_mean(x, kinds)
    return (x * x).mean(-1)


def norm_denominator(trace: Trace, x: np.ndarray, kinds: np.ndarray) -> np.ndarray:
    """Return the divisors of norms of the given kinds, (…, D) -> (…)."""
    return np.where(kinds == "none", 1.0, np.sqrt(mean_square_or_variance(x, kinds) + trace.config.norm_eps))


def subtract_mean(x: np.ndarray, kinds: np.ndarray) -> np.ndarray:
    """Return vectors minus their mean for LayerNorm, and unchanged for other norms."""
    is_layernorm = (kinds == "layernorm")[..., None]
    return np.where(is_layernorm, x - x.mean(-1, keepdims=True), x) if is_layernorm.any() else x


def normalise_before_gain(trace: Trace, vector: np.ndarray, x: np.ndarray, name: str, position: int) -> np.ndarray:
    """Normalise a vector (D,) as a norm of the run normalises x at a position, before the gain.

    The vector is a term of x, or x itself; the divisor is that of x.
    """
    kind = norm_kinds(trace, name, position)
    return subtract_mean(vector, kind) / norm_denominator(trace, x, kind)[..., None]


def norm_kinds(trace: Trace, name: str, positions: int | np.ndarray | None = None) -> np.ndarray:
    """Return the kind of a norm in the run, "rmsnorm", "layernorm" or "none": () at a position, (T,) at several.

    Args:
        positions: required if interventions replace the norm at some positions only.
    """
    kinds_by_position = np.full(np.shape(positions), trace.config.norm, dtype="<U9")
    for intervention in active_norm_replacements(trace.edits, name):
        kinds_by_position = np.where(is_active(intervention, positions), intervention.by, kinds_by_position)
    return kinds_by_position
