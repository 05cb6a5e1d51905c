"""Sums, products, copies and linear maps."""

from dataclasses import dataclass

import numpy as np

from explorer.explain.notation import factor, number, products
from explorer.explain.source import Source
from explorer.explain.working import ALL, Index, Input, Working, take
from explorer.language import N_, look_up
from explorer.tracing.matrices import in_parts
from explorer.tracing.trace import Trace


@dataclass(frozen=True)
class Copy:
    """Another value, unchanged."""

    symbol: str
    of: str
    source: Source

    def working(self, trace: Trace, at: Index) -> Working:
        value, read = take(trace, self.of, *at)
        return Working(
            f"{self.symbol} = {self.of}", lambda: f"{self.symbol} = {number(value)}", value, (read,), np.abs(value)
        )


@dataclass(frozen=True)
class Sum:
    """All terms together."""

    symbol: str
    terms: tuple[str, ...]
    source: Source

    def working(self, trace: Trace, at: Index) -> Working:
        values, inputs = zip(*(take(trace, term, *at) for term in self.terms), strict=True)
        total = sum(values)

        def numbers() -> str:
            first, *rest = values
            return f"{self.symbol} = {' + '.join((number(first), *map(factor, rest)))} = {number(total)}"

        symbols = f"{self.symbol} = {' + '.join(map(short, self.terms))}"
        return Working(symbols, numbers, total, inputs, sum(map(np.abs, values)))


@dataclass(frozen=True)
class Product:
    """a · b, element by element."""

    symbol: str
    a: str
    b: str
    source: Source

    def working(self, trace: Trace, at: Index) -> Working:
        (a, from_a), (b, from_b) = take(trace, self.a, *at), take(trace, self.b, *at)
        return Working(
            f"{self.symbol} = {short(self.a)} · {short(self.b)}",
            lambda: f"{self.symbol} = {factor(a)} · {factor(b)} = {number(a * b)}",
            a * b,
            (from_a, from_b),
            np.abs(a * b),
        )


WITHOUT_BIAS, WITH_BIAS = N_("{symbol} = Σ weight · {x}"), N_("{symbol} = Σ weight · {x} + bias")


@dataclass(frozen=True)
class Linear:
    """W x + b of every token's x.

    Attributes:
        x: a captured value (T, D), or one a head (H, T, d), whose vectors are then put side by side.
        map: name of the linear map, whose weight and, if it has one, bias are used.
        heads: how many heads the result is split into, (heads, T, d); None: it stays (T, D).
    """

    symbol: str
    x: str
    map: str
    source: Source
    heads: int | None = None

    def working(self, trace: Trace, at: Index) -> Working:
        of_heads, rows = trace[self.x].ndim == 3, self.rows(trace, at)
        x, read = take(trace, self.x, *[ALL] * of_heads, at[-2])
        x = side_by_side(x) if of_heads else x
        value, sizes, from_weight = mapped(x, trace, f"{self.map}.weight", rows)
        inputs, bias = (read, from_weight), None
        if f"{self.map}.bias" in trace.weights:
            bias, from_bias = take(trace, f"{self.map}.bias", rows)
            value, sizes, inputs = value + bias, sizes + np.abs(bias), (*inputs, from_bias)

        def numbers() -> str:
            plus = "" if bias is None else f" + {factor(bias)}"
            weight, _from_weight = take(trace, f"{self.map}.weight", rows)
            return f"{self.symbol} = {products(weight, x)}{plus} = {number(value)}"

        symbols = look_up(WITHOUT_BIAS if bias is None else WITH_BIAS, symbol=self.symbol, x=short(self.x))
        return Working(symbols, numbers, self.split(value), inputs, self.split(sizes))

    def rows(self, trace: Trace, at: Index) -> int | slice:
        """Those of the weight that make a part of the result."""
        *head, _token, dim = at
        if not head or isinstance(head[0], slice):
            return dim
        width = len(trace.weights[f"{self.map}.weight"]) // self.heads
        first = head[0] * width
        return slice(first, first + width) if isinstance(dim, slice) else first + dim

    def split(self, y: np.ndarray) -> np.ndarray:
        return y.reshape(len(y), self.heads, -1).swapaxes(0, 1) if self.heads and y.ndim == 2 else y


def mapped(x: np.ndarray, trace: Trace, name: str, rows: int | slice) -> tuple[np.ndarray, np.ndarray, Input]:
    """Products of each vector of x, (…, D), with some rows of a weight, and how large their terms are, (…, m), or (…)
    of one row: in float64, of which there is never more than a part of the weight."""
    if not isinstance(rows, slice):
        row, read = take(trace, name, rows)
        return x @ row, lengths(x)[..., 0] * np.linalg.norm(row), read
    weight = trace.weights[name]
    count = len(range(*rows.indices(len(weight))))
    value, of_rows = np.empty((*x.shape[:-1], count)), np.empty(count)
    for place, part in in_parts(weight, rows):
        wide = part.astype(np.float64)
        np.matmul(x, wide.T, out=value[..., place])
        of_rows[place] = np.sqrt(np.einsum("nd,nd->n", wide, wide))  # unlike `norm`, without copies
    return value, lengths(x) * of_rows, Input(name, (rows,), (count, *weight.shape[1:]))


def side_by_side(x: np.ndarray) -> np.ndarray:
    """The vectors of all heads as one: (H, …, d) -> (…, H d)."""
    x = np.moveaxis(x, 0, -2)
    return x.reshape(*x.shape[:-2], -1)


def dots(x: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Products of each vector of x with each of the rows: (…, n, D), (…, m, D) -> (…, n, m); or of one vector (D,)."""
    return x @ (rows.swapaxes(-1, -2) if rows.ndim > 1 else rows)


def lengths(x: np.ndarray) -> np.ndarray:
    """‖x‖₂ of each vector, as a vector of one number: (…, D) -> (…, 1)."""
    return np.linalg.norm(x, axis=-1, keepdims=True)


def short(name: str) -> str:
    """The last part of a captured value's name; the last two of what a sublayer gives out, which both call "out"."""
    parts = name.split(".")
    return ".".join(parts[-2:] if parts[-1] == "out" else parts[-1:])
