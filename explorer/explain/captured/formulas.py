"""Formulas of sums, products, linear maps, norms, activations and soft caps, and a run's interventions on their values.

Interventions are applied in NumPy: to captured values, and to vectors that the analysis propagates.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from explorer.architecture.formulas import softcap_formula
from explorer.explain.derivation import ALL, Calculation, Index, Input, read_input
from explorer.explain.notation import format_dot_product, format_factor, format_six_digits, token_formatter
from explorer.explain.source_code import SourceLine
from explorer.interventions import (
    Intervention,
    PositionShift,
    RopeBaseReplacement,
    active_norm_replacements,
    sort_interventions,
)
from explorer.interventions.attention_mask import MaskEdge
from explorer.tracing.trace import Trace
from explorer.tracing.weight_matrices import iter_chunks
from explorer.translations import N_, _, translate


class Formula(Protocol):
    """The formula of a captured value.

    Attributes:
        source: the line of the model that computes it.
    """

    source: SourceLine

    def calculate(self, trace: Trace, index: Index) -> Calculation:
        """Calculate the element at an index, or the whole value if all indices are full slices.

        Where a value needs all of one axis, such as the logits after one token, only that axis has a slice.
        """


@dataclass(frozen=True)
class CopyFormula:
    """A copy of another value."""

    symbol: str
    x: str
    source: SourceLine

    def calculate(self, trace: Trace, index: Index) -> Calculation:
        value, read = read_input(trace, self.x, *index)
        return Calculation(
            f"{self.symbol} = {self.x}",
            lambda: f"{self.symbol} = {format_six_digits(value)}",
            value,
            (read,),
            np.abs(value),
        )


@dataclass(frozen=True)
class AdditionFormula:
    """The sum of several values."""

    symbol: str
    terms: tuple[str, ...]
    source: SourceLine

    def calculate(self, trace: Trace, index: Index) -> Calculation:
        values, inputs = zip(*(read_input(trace, term, *index) for term in self.terms), strict=True)
        total = sum(values)

        def numbers() -> str:
            first, *rest = values
            return (
                f"{self.symbol} = {' + '.join((format_six_digits(first), *map(format_factor, rest)))} "
                f"= {format_six_digits(total)}"
            )

        symbols = f"{self.symbol} = {' + '.join(map(short_tap_name, self.terms))}"
        return Calculation(symbols, numbers, total, inputs, sum(map(np.abs, values)))


@dataclass(frozen=True)
class ProductFormula:
    """The element-wise product a · b."""

    symbol: str
    a: str
    b: str
    source: SourceLine

    def calculate(self, trace: Trace, index: Index) -> Calculation:
        (a, from_a), (b, from_b) = read_input(trace, self.a, *index), read_input(trace, self.b, *index)
        return Calculation(
            f"{self.symbol} = {short_tap_name(self.a)} · {short_tap_name(self.b)}",
            lambda: f"{self.symbol} = {format_factor(a)} · {format_factor(b)} = {format_six_digits(a * b)}",
            a * b,
            (from_a, from_b),
            np.abs(a * b),
        )


WITHOUT_BIAS, WITH_BIAS = N_("{symbol} = Σ weight · {x}"), N_("{symbol} = Σ weight · {x} + bias")


@dataclass(frozen=True)
class LinearLayerFormula:
    """The linear map W x + b of every token's x.

    Attributes:
        x: a captured value (T, D), or per head (H, T, d), whose vectors are concatenated.
        map: name of the linear map, whose weight and, if it has one, bias are used.
        heads: number of heads that the result is split into, (heads, T, d); None: it stays (T, D).
    """

    symbol: str
    x: str
    map: str
    source: SourceLine
    heads: int | None = None

    def calculate(self, trace: Trace, index: Index) -> Calculation:
        is_by_head, rows = trace[self.x].ndim == 3, self.rows(trace, index)
        x, read = read_input(trace, self.x, *[ALL] * is_by_head, index[-2])
        x = concatenate_heads(x) if is_by_head else x
        value, sizes, from_weight = multiply_by_weight_rows(x, trace, f"{self.map}.weight", rows)
        inputs, bias = (read, from_weight), None
        if f"{self.map}.bias" in trace.weights:
            bias, from_bias = read_input(trace, f"{self.map}.bias", rows)
            value, sizes, inputs = value + bias, sizes + np.abs(bias), (*inputs, from_bias)

        def numbers() -> str:
            plus = "" if bias is None else f" + {format_factor(bias)}"
            weight, _from_weight = read_input(trace, f"{self.map}.weight", rows)
            return f"{self.symbol} = {format_dot_product(weight, x)}{plus} = {format_six_digits(value)}"

        symbols = translate(WITHOUT_BIAS if bias is None else WITH_BIAS, symbol=self.symbol, x=short_tap_name(self.x))
        return Calculation(symbols, numbers, self.split(value), inputs, self.split(sizes))

    def rows(self, trace: Trace, index: Index) -> int | slice:
        """Return the rows of the weight that compute a part of the result."""
        *head, _token, dim = index
        if not head or isinstance(head[0], slice):
            return dim
        width = len(trace.weights[f"{self.map}.weight"]) // self.heads
        first = head[0] * width
        return slice(first, first + width) if isinstance(dim, slice) else first + dim

    def split(self, y: np.ndarray) -> np.ndarray:
        """Split a result (T, H d) into heads (H, T, d) if it has heads."""
        return y.reshape(len(y), self.heads, -1).swapaxes(0, 1) if self.heads and y.ndim == 2 else y


def multiply_by_weight_rows(
    x: np.ndarray, trace: Trace, name: str, rows: int | slice
) -> tuple[np.ndarray, np.ndarray, Input]:
    """Return the products of each vector of x, (…, D), with some rows of a weight, and the sizes of their terms.

    Both (…, m), or (…) for one row, in float64, with only part of the weight in float64 at a time.
    """
    if not isinstance(rows, slice):
        row, read = read_input(trace, name, rows)
        return x @ row, vector_norms(x)[..., 0] * np.linalg.norm(row), read
    weight = trace.weights[name]
    count = len(range(*rows.indices(len(weight))))
    value, row_norms = np.empty((*x.shape[:-1], count)), np.empty(count)
    for block, weight_block in iter_chunks(weight, rows):
        wide = weight_block.astype(np.float64)
        np.matmul(x, wide.T, out=value[..., block])
        row_norms[block] = np.sqrt(np.einsum("nd,nd->n", wide, wide))  # unlike `norm`, without copies
    return value, vector_norms(x) * row_norms, Input(name, (rows,), (count, *weight.shape[1:]))


def concatenate_heads(x: np.ndarray) -> np.ndarray:
    """Concatenate the vectors of all heads: (H, …, d) -> (…, H d)."""
    x = np.moveaxis(x, 0, -2)
    return x.reshape(*x.shape[:-2], -1)


def dot_products(x: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return the dot products of vectors with rows, (…, n, D), (…, m, D) -> (…, n, m), or with one vector (D,)."""
    return x @ (rows.swapaxes(-1, -2) if rows.ndim > 1 else rows)


def vector_norms(x: np.ndarray) -> np.ndarray:
    """Return ‖x‖₂ of each vector, with the last axis kept: (…, D) -> (…, 1)."""
    return np.linalg.norm(x, axis=-1, keepdims=True)


def short_tap_name(name: str) -> str:
    """Return the last part of a tap's name; the last two for sublayer outputs, which are both called "out"."""
    parts = name.split(".")
    return ".".join(parts[-2:] if parts[-1] == "out" else parts[-1:])


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
            lambda: f"{self.symbol} = {name}({format_six_digits(x)}) = {format_six_digits(value)}",
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


@dataclass(frozen=True)
class SoftcapFormula:
    """Soft-capping c · tanh(u / c) of the result u of a linear map."""

    symbol: str
    x: LinearLayerFormula
    cap: float
    source: SourceLine

    def calculate(self, trace: Trace, index: Index) -> Calculation:
        plain = LinearLayerFormula("u", self.x.x, self.x.map, self.x.source, self.x.heads).calculate(trace, index)
        value = self.cap * np.tanh(plain.value / self.cap)
        return Calculation(
            f"{self.symbol} = {softcap_formula('u', self.cap)}, {plain.symbols}",
            lambda: (
                f"{plain.numbers()}; {self.symbol} = "
                f"{softcap_formula(format_factor(plain.value), self.cap)} = {format_six_digits(value)}"
            ),
            value,
            plain.inputs,
            plain.sizes,
        )


def gelu(x: np.ndarray) -> np.ndarray:
    """x · Φ(x); NumPy has no erf."""
    return x / 2 * (1 + np.array([math.erf(value) for value in np.ravel(x) / math.sqrt(2)]).reshape(np.shape(x)))


def gelu_tanh(x: np.ndarray) -> np.ndarray:
    """The tanh approximation of GELU."""
    return x / 2 * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


# kind of feed-forward -> its activation's name, and the function (of float64 arrays)
ACTIVATIONS: dict[str, tuple[str, Callable[[np.ndarray], np.ndarray]]] = {
    "swiglu": ("SiLU", lambda x: x * (1 + np.tanh(x / 2)) / 2),
    "geglu": ("GELU", gelu_tanh),
    "relu": ("ReLU", lambda x: np.maximum(x, 0)),
    "relu2": ("ReLU²", lambda x: np.maximum(x, 0) ** 2),
    "gelu": ("GELU", gelu),
    "gelu_tanh": ("GELU", gelu_tanh),
}


NORM_LINES = {
    "rmsnorm": SourceLine("model/layers/basic_layers.py", "return ((x32 * inverse_rms)"),
    "layernorm": SourceLine("model/layers/basic_layers.py", "return F.layer_norm("),
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
            top, under, plus = format_six_digits(x[dim]), "", ""
            if kind == "layernorm":
                top = f"({top} − {format_factor(mean.item())})"
            if kind != "none":
                mean_square = format_six_digits(mean_square_or_variance(x, kinds_by_position))
                under = f" / √({mean_square} + {format_six_digits(trace.config.norm_eps)})"
            if has_biases.any():
                plus = f" + {format_factor(bias)}"
            return f"{self.symbol} = {top}{under} · {format_factor(gain)}{plus} = {format_six_digits(value)}"

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
        kinds_by_position = np.where(intervention.is_active(positions), intervention.by, kinds_by_position)
    return kinds_by_position


def active_interventions(trace: Trace, name: str) -> list[Intervention]:
    """Return the run's interventions on a value, in the order in which they act."""
    return [edit for edit in sort_interventions(trace.edits, trace.config) if edit.affects(name)]


def apply_intervention_linear_part(
    trace: Trace, name: str, x: np.ndarray, position: int | np.ndarray | None = None, backwards: bool = False
) -> np.ndarray:
    """Apply the linear part of the run's interventions on a value to vectors (…, N) at its tap, or to logits.

    The constants that interventions add are left out, see `added_constant`.

    Args:
        position: position of the vectors, or (T,) one for each of x (…, T, N); required if interventions act at
            some positions only.
        backwards: transform a direction that is read after the interventions to the direction before them.
    """
    edits = active_interventions(trace, name)
    for edit in reversed(edits) if backwards else edits:
        x = edit.apply_linear(trace, x, position)
    return x


def recompute_with_interventions(trace: Trace, name: str, value: np.ndarray) -> np.ndarray:
    """Apply the run's interventions to a whole value that was recomputed without them."""
    for edit in active_interventions(trace, name):
        value, _sizes = edit.recompute(trace, value, np.abs(value))
    return value


def adds_constant(trace: Trace, name: str) -> bool:
    """Return whether interventions on a value add a constant to it."""
    return any(edit.adds for edit in active_interventions(trace, name))


def added_constant(trace: Trace, name: str, before: np.ndarray, position: int | np.ndarray) -> np.ndarray:
    """Return the constant that interventions added to a value: captured minus linear part of `before`."""
    captured = trace[name][..., position, :].astype(np.float64)
    return (
        captured - apply_intervention_linear_part(trace, name, before, position)
        if adds_constant(trace, name)
        else np.zeros_like(captured)
    )


def masked_attention_edges(trace: Trace, name: str) -> np.ndarray:
    """Return (H, T, T) booleans: True for query-key edges that the run's masks block."""
    mask = np.zeros(trace[name].shape, dtype=bool)
    for intervention in sort_interventions(trace.edits, trace.config):
        if isinstance(intervention, MaskEdge) and intervention.tap == name and intervention.key < len(trace):
            queries = [query for query in range(len(trace)) if intervention.blocks_query(query)]
            mask[slice(None) if intervention.index is None else intervention.index, queries, intervention.key] = True
    return mask


def calculate_with_interventions(trace: Trace, name: str, index: Index, formula: Formula) -> Calculation:
    """Calculate part of a captured value with the interventions on it."""
    working = formula.calculate(trace, index)
    edits = [edit for edit in active_interventions(trace, name) if edit.symbol()]
    if not edits:
        return working
    shape = trace.shape(name)
    whole = formula.calculate(trace, (ALL,) * len(shape))  # what an edit makes of one number may depend on others
    value, sizes = whole.value, np.broadcast_to(whole.sizes, shape)
    for edit in edits:
        value, sizes = edit.recompute(trace, value, sizes)
        if np.any(edit.element_mask(shape)[index]):
            words = edit.describe(trace.config, token_formatter(trace))
            working = append_intervention(working, value[index], sizes[index], edit.symbol(), words)
    return working


def append_intervention(
    working: Calculation, value: np.ndarray, sizes: np.ndarray, symbol: str, description: str
) -> Calculation:
    """Append an intervention to a calculation's formula, and replace its value and sizes."""
    return replace(
        working,
        symbols=_(
            "{symbols}; then {times}, as it was changed: {words}",
            symbols=working.symbols,
            times=symbol,
            words=description,
        ),
        numbers=lambda: f"{working.numbers()}; {symbol} = {format_six_digits(value)}",
        value=value,
        sizes=sizes,
    )


def first_token_position(trace: Trace) -> int:
    """Return the position of the first token: 0 unless a position shift is active."""
    return sum(int(intervention.amount) for intervention in trace.edits if isinstance(intervention, PositionShift))


def rope_theta(trace: Trace) -> float:
    """Return the base θ of the rotary angles."""
    changed = [intervention.amount for intervention in trace.edits if isinstance(intervention, RopeBaseReplacement)]
    return changed[-1] if changed else trace.config.rope_theta
