"""Rotation, scores, pattern, and what the heads fetch."""

from dataclasses import dataclass

import numpy as np

from explorer.explain.source import Source
from explorer.explain.working import Working, factor, number, products, take, values
from explorer.tracing.trace import Trace


@dataclass(frozen=True)
class Rotation:
    """Pairs of dimensions (a, b), turned by their angle φ: (a + i b) e^{iφ}."""

    symbol: str
    x: str
    layout: str
    source: Source

    @property
    def names(self) -> tuple[str, ...]:
        return self.x, "rope.angles"

    def array(self, trace: Trace) -> np.ndarray:
        x, angles = values(trace, self.x), values(trace, "rope.angles")  # (H, T, d), (T, F)
        first, second = self.dims(np.arange(angles.shape[1]), angles.shape[1])
        turned = (x[..., first] + 1j * x[..., second]) * np.exp(1j * angles)
        y = np.empty_like(x)
        y[..., first], y[..., second] = turned.real, turned.imag
        return y

    def sizes(self, trace: Trace) -> np.ndarray:
        x, pairs = values(trace, self.x), trace["rope.angles"].shape[1]
        sizes, dims = np.empty_like(x), self.dims(np.arange(pairs), pairs)
        for part in dims:
            sizes[..., part] = np.hypot(*(x[..., either] for either in dims))
        return sizes

    def dims(self, pair, pairs: int):
        """The two dimensions of a pair, or of several."""
        return (2 * pair, 2 * pair + 1) if self.layout == "adjacent" else (pair, pair + pairs)

    def working(self, trace: Trace, index: tuple[int, ...]) -> Working:
        head, token, dim = index
        pairs = trace["rope.angles"].shape[1]
        pair, place = (dim // 2, dim % 2) if self.layout == "adjacent" else (dim % pairs, dim // pairs)
        (a, from_a), (b, from_b) = (take(trace, self.x, head, token, i) for i in self.dims(pair, pairs))
        angle, from_angle = take(trace, "rope.angles", token, pair)
        cos, sin = np.cos(angle), np.sin(angle)
        if place == 0:
            value = a * cos - b * sin
            symbols = "a cos φ − b sin φ"
            numbers = f"{factor(a)} · cos {number(angle)} − {factor(b)} · sin {number(angle)}"
        else:
            value = a * sin + b * cos
            symbols = "a sin φ + b cos φ"
            numbers = f"{factor(a)} · sin {number(angle)} + {factor(b)} · cos {number(angle)}"
        return Working(
            f"{self.symbol} = {symbols}, the {('first', 'second')[place]} of pair {pair}",
            f"{self.symbol} = {numbers} = {number(value)}",
            float(value),
            (from_a, from_b, from_angle),
        )


@dataclass(frozen=True)
class Scores:
    """q·k / √d of every query and key; keys (G, T, d) may serve groups of the H heads of queries."""

    q: str
    k: str
    source: Source

    @property
    def names(self) -> tuple[str, ...]:
        return self.q, self.k

    def array(self, trace: Trace) -> np.ndarray:
        q, k = values(trace, self.q), for_all_heads(trace, self.k)
        return q @ k.swapaxes(1, 2) / np.sqrt(q.shape[-1])  # (H, T, T)

    def sizes(self, trace: Trace) -> np.ndarray:
        q, k = (np.linalg.norm(x, axis=-1) for x in (values(trace, self.q), for_all_heads(trace, self.k)))  # (H, T)
        return q[:, :, None] * k[:, None, :] / np.sqrt(trace.config.d_head)

    def working(self, trace: Trace, index: tuple[int, ...]) -> Working:
        head, query, key = index
        q, from_q = take(trace, self.q, head, query)
        k, from_k = take(trace, self.k, group_of(trace, self.k, head), key)
        dot, d = float(q @ k), len(q)
        value = dot / d**0.5
        numbers = (
            f"score = {products(q, k)} / √{d} = {number(dot)} / {number(d**0.5)} = {number(value)}"
            if d > 1
            else f"score = {products(q, k)} = {number(value)}"
        )
        return Working("score = q·k / √d", numbers, value, (from_q, from_k))


@dataclass(frozen=True)
class Pattern:
    """softmax of the scores over the keys up to the query; 0 after it."""

    scores: str
    source: Source

    @property
    def names(self) -> tuple[str, ...]:
        return (self.scores,)

    def array(self, trace: Trace) -> np.ndarray:
        exps = np.exp(self.below_largest(trace))
        return exps / exps.sum(-1, keepdims=True)

    def sizes(self, trace: Trace) -> np.ndarray:
        below = self.below_largest(trace)  # rounded itself, so that its exponential is off by as many times its size
        return self.array(trace) * (1 - np.where(np.isinf(below), 0, below))

    def below_largest(self, trace: Trace) -> np.ndarray:
        """score − max of each row, −∞ after the query."""
        scores = values(trace, self.scores)
        scores[:, ~np.tri(len(trace), dtype=bool)] = -np.inf
        return scores - scores.max(-1, keepdims=True)

    def working(self, trace: Trace, index: tuple[int, ...]) -> Working:
        head, query, key = index
        scores, read = take(trace, self.scores, head, query, slice(None, query + 1))
        symbols = "weight = e^(score − max) / Σ e^(scores − max)"
        if key > query:
            return Working(symbols, f"weight = 0: key {key} comes after query {query}, masked", 0.0, (read,))
        exps = np.exp(scores - scores.max())
        value = exps[key] / exps.sum()
        numbers = (
            f"weight = e^({number(scores[key])} − {factor(scores.max())}) / {number(exps.sum())} "
            f"= {number(exps[key])} / {number(exps.sum())} = {number(value)}"
        )
        return Working(symbols, numbers, float(value), (read,))


@dataclass(frozen=True)
class Fetched:
    """z, the values weighted by the pattern; values (G, T, d) may serve groups of heads."""

    pattern: str
    v: str
    source: Source

    @property
    def names(self) -> tuple[str, ...]:
        return self.pattern, self.v

    def array(self, trace: Trace) -> np.ndarray:
        return values(trace, self.pattern) @ for_all_heads(trace, self.v)  # (H, T, d)

    def sizes(self, trace: Trace) -> np.ndarray:
        return np.abs(values(trace, self.pattern)) @ np.abs(for_all_heads(trace, self.v))

    def working(self, trace: Trace, index: tuple[int, ...]) -> Working:
        head, query, dim = index
        seen = slice(None, query + 1)
        weights, from_pattern = take(trace, self.pattern, head, query, seen)
        v, from_v = take(trace, self.v, group_of(trace, self.v, head), seen, dim)
        value = float(weights @ v)
        numbers = f"z = {products(weights, v)} = {number(value)}"
        return Working("z = Σ weight · v, over the keys up to the query", numbers, value, (from_pattern, from_v))


def group_of(trace: Trace, name: str, head: int) -> int:
    """Which head of keys or values serves a head of queries."""
    return head // (trace.config.num_heads // len(trace[name]))


def for_all_heads(trace: Trace, name: str) -> np.ndarray:
    """Keys or values of G heads, each repeated for the heads of queries it serves: (G, T, d) -> (H, T, d)."""
    each = values(trace, name)
    return each[[group_of(trace, name, head) for head in range(trace.config.num_heads)]]
