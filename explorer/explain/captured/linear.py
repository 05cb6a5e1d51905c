"""Sums, products, copies and linear maps."""

from dataclasses import dataclass

import numpy as np

from explorer.explain.source import Source
from explorer.explain.working import Input, Working, factor, number, products, take, values
from explorer.tracing.trace import Trace


@dataclass(frozen=True)
class Copy:
    """Another value, unchanged."""

    symbol: str
    of: str
    source: Source

    @property
    def names(self) -> tuple[str, ...]:
        return (self.of,)

    def array(self, trace: Trace) -> np.ndarray:
        return values(trace, self.of)

    def sizes(self, trace: Trace) -> np.ndarray:
        return np.abs(values(trace, self.of))

    def vector(self, trace: Trace, index: tuple[int, ...]) -> tuple[np.ndarray, tuple[Input, ...]]:
        """All of its last axis, and where that is from."""
        vector, read = take(trace, self.of, *index)
        return vector, (read,)

    def working(self, trace: Trace, index: tuple[int, ...]) -> Working:
        value, read = take(trace, self.of, *index)
        return Working(f"{self.symbol} = {self.of}", f"{self.symbol} = {number(value)}", float(value), (read,))


@dataclass(frozen=True)
class Sum:
    """a + b."""

    symbol: str
    a: str
    b: str
    source: Source

    @property
    def names(self) -> tuple[str, ...]:
        return self.a, self.b

    def array(self, trace: Trace) -> np.ndarray:
        return values(trace, self.a) + values(trace, self.b)

    def sizes(self, trace: Trace) -> np.ndarray:
        return np.abs(values(trace, self.a)) + np.abs(values(trace, self.b))

    def working(self, trace: Trace, index: tuple[int, ...]) -> Working:
        (a, from_a), (b, from_b) = take(trace, self.a, *index), take(trace, self.b, *index)
        symbols = f"{self.symbol} = {short(self.a)} + {short(self.b)}"
        numbers = f"{self.symbol} = {number(a)} + {factor(b)} = {number(a + b)}"
        return Working(symbols, numbers, float(a + b), (from_a, from_b))


@dataclass(frozen=True)
class Product:
    """a · b, element by element."""

    symbol: str
    a: str
    b: str
    source: Source

    @property
    def names(self) -> tuple[str, ...]:
        return self.a, self.b

    def array(self, trace: Trace) -> np.ndarray:
        return values(trace, self.a) * values(trace, self.b)

    def sizes(self, trace: Trace) -> np.ndarray:
        return np.abs(self.array(trace))

    def working(self, trace: Trace, index: tuple[int, ...]) -> Working:
        (a, from_a), (b, from_b) = take(trace, self.a, *index), take(trace, self.b, *index)
        symbols = f"{self.symbol} = {short(self.a)} · {short(self.b)}"
        numbers = f"{self.symbol} = {factor(a)} · {factor(b)} = {number(a * b)}"
        return Working(symbols, numbers, float(a * b), (from_a, from_b))


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

    @property
    def names(self) -> tuple[str, ...]:
        return self.x, f"{self.map}.weight"

    def array(self, trace: Trace) -> np.ndarray:
        y = self.rows(trace) @ values(trace, f"{self.map}.weight").T
        if f"{self.map}.bias" in trace.weights:
            y += values(trace, f"{self.map}.bias")
        return self.split(y)

    def sizes(self, trace: Trace) -> np.ndarray:
        x, weight = (np.linalg.norm(rows, axis=-1) for rows in (self.rows(trace), values(trace, f"{self.map}.weight")))
        sizes = np.outer(x, weight)
        if f"{self.map}.bias" in trace.weights:
            sizes += np.abs(values(trace, f"{self.map}.bias"))
        return self.split(sizes)

    def rows(self, trace: Trace) -> np.ndarray:
        """(T, D) the x of every token."""
        x = values(trace, self.x)
        return x.swapaxes(0, 1).reshape(len(trace), -1) if x.ndim == 3 else x  # (H, T, d) -> (T, H d)

    def split(self, y: np.ndarray) -> np.ndarray:
        return y if self.heads is None else y.reshape(len(y), self.heads, -1).swapaxes(0, 1)

    def row(self, trace: Trace, index: tuple[int, ...]) -> tuple[np.ndarray, Input]:
        """The x of an element's token."""
        of_heads = trace[self.x].ndim == 3
        x, read = take(trace, self.x, *((slice(None), index[-1]) if of_heads else (index[-1],)))
        return x.ravel(), read

    def vector(self, trace: Trace, index: tuple[int, ...]) -> tuple[np.ndarray, tuple[Input, ...]]:
        """Of a result split into heads, the whole vector of a head and token, and what it is worked out from."""
        head, token = index
        x, read = self.row(trace, (token,))
        width = len(trace.weights[f"{self.map}.weight"]) // self.heads
        rows = slice(head * width, (head + 1) * width)
        weight, from_weight = take(trace, f"{self.map}.weight", rows)
        if f"{self.map}.bias" not in trace.weights:
            return weight @ x, (read, from_weight)
        bias, from_bias = take(trace, f"{self.map}.bias", rows)
        return weight @ x + bias, (read, from_weight, from_bias)

    def working(self, trace: Trace, index: tuple[int, ...]) -> Working:
        *head, token, dim = index
        if head:
            dim += head[0] * (len(trace.weights[f"{self.map}.weight"]) // self.heads)
        x, read = self.row(trace, (token,))
        weight, from_weight = take(trace, f"{self.map}.weight", dim)
        value, inputs = float(weight @ x), [read, from_weight]
        symbols = f"{self.symbol} = Σ weight · {short(self.x)}"
        numbers = f"{self.symbol} = {products(weight, x)}"
        if f"{self.map}.bias" in trace.weights:
            bias, from_bias = take(trace, f"{self.map}.bias", dim)
            symbols, numbers = f"{symbols} + bias", f"{numbers} + {factor(bias)}"
            value += float(bias)
            inputs.append(from_bias)
        return Working(symbols, f"{numbers} = {number(value)}", value, tuple(inputs))


def short(name: str) -> str:
    """The last part of a captured value's name; the last two of what a sublayer gives out, which both call "out"."""
    parts = name.split(".")
    return ".".join(parts[-2:] if parts[-1] == "out" else parts[-1:])
