"""Rotation, scores, pattern, and what the heads fetch."""

from dataclasses import dataclass

import numpy as np

from explorer.analysis.interventions import masked
from explorer.architecture.attention import divisor, divisor_in_numbers, first_visible, visible
from explorer.architecture.caps import capped, written
from explorer.explain.captured.linear import dots, lengths
from explorer.explain.notation import factor, number, products
from explorer.explain.source import Source
from explorer.explain.working import ALL, Index, Working, take
from explorer.language import N_, _, look_up
from explorer.tracing.trace import Trace

TURNED = (
    N_("{symbol} = a cos φ − b sin φ, the first of pair {pair}"),
    N_("{symbol} = a sin φ + b cos φ, the second of pair {pair}"),
)


@dataclass(frozen=True)
class Rotation:
    """Pairs of dimensions (a, b), turned by their angle φ: (a cos φ − b sin φ, a sin φ + b cos φ), times `scales` (F,)
    where there are any."""

    symbol: str
    x: str
    angles: str
    layout: str
    source: Source
    scales: np.ndarray | None = None

    def working(self, trace: Trace, at: Index) -> Working:
        head, token, dim = at
        pairs, adjacent, whole = trace.config.d_head // 2, self.layout == "adjacent", isinstance(dim, slice)
        if whole:
            pair, place = ALL, 0
            dims = (slice(0, None, 2), slice(1, None, 2)) if adjacent else (slice(pairs), slice(pairs, None))
        else:
            pair, place = (dim // 2, dim % 2) if adjacent else (dim % pairs, dim // pairs)
            dims = (2 * pair, 2 * pair + 1) if adjacent else (pair, pair + pairs)
        (a, from_a), (b, from_b) = (take(trace, self.x, head, token, dim) for dim in dims)
        angle, from_angle = take(trace, self.angles, token, pair)
        scale = 1.0 if self.scales is None else self.scales[pair]
        cos, sin = np.cos(angle) * scale, np.sin(angle) * scale
        turned, size = (a * cos - b * sin, a * sin + b * cos), np.hypot(a, b) * scale
        value, sizes = turned[place], size
        if whole:
            value, sizes = (self.joined(*parts) for parts in (turned, (size, size)))

        def numbers() -> str:
            (one, other), sign = (("cos", "sin"), "−") if place == 0 else (("sin", "cos"), "+")
            terms = f"{factor(a)} · {one} {number(angle)} {sign} {factor(b)} · {other} {number(angle)}"
            if self.scales is not None:
                terms = f"({terms}) · {number(scale)}"
            return f"{self.symbol} = {terms} = {number(value)}"

        symbols = look_up(TURNED[place], symbol=self.symbol, pair=pair)
        if self.scales is not None:
            symbols = _("{symbols}, times the factor of the scaling", symbols=symbols)
        return Working(symbols, numbers, value, (from_a, from_b, from_angle), sizes)

    def joined(self, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        """The two numbers of every pair in their places: twice (H, T, F) -> (H, T, d)."""
        pairs = np.stack((first, second), axis=-1 if self.layout == "adjacent" else -2)
        return pairs.reshape(*first.shape[:-1], -1)


@dataclass(frozen=True)
class Scores:
    """q·k / √d of every query and key, or divided by another number; keys (G, T, d) may serve groups of the H heads of
    queries."""

    q: str
    k: str
    source: Source

    def working(self, trace: Trace, at: Index) -> Working:
        head, query, key = at
        q, from_q = take(trace, self.q, head, query)
        k, from_k = take(trace, self.k, group_of(trace, self.k, head), key)
        dot, by = dots(q, k), trace.config.divisor
        value = dot / by

        def numbers() -> str:
            if by == 1:
                return _("score = {sum} = {value}", sum=products(q, k), value=number(value))
            return _(
                "score = {sum} / {divisor} = {quotient} = {value}",
                sum=products(q, k),
                divisor=divisor_in_numbers(trace.config),
                quotient=f"{number(dot)} / {number(by)}",
                value=number(value),
            )

        sizes = dots(lengths(q), lengths(k)) / by
        symbols = _("score = q·k / {divisor}", divisor=divisor(trace.config))
        return Working(symbols, numbers, value, (from_q, from_k), sizes)


@dataclass(frozen=True)
class Pattern:
    """softmax of the scores, capped where the model caps them, over the keys up to the query, or those of the layer's
    window; 0 elsewhere, and where the run's masks let it not look."""

    name: str
    scores: str
    layer: int
    source: Source

    def working(self, trace: Trace, at: Index) -> Working:
        head, query, key = at
        scores, read = take(trace, self.scores, head, query, up_to(query))
        symbols, cap = _("weight = e^(score − max) / Σ e^(scores − max)"), trace.config.score_cap
        if cap:
            scores, plain = capped(scores, cap), scores
            symbols = _("weight = e^(s − max) / Σ e^(s − max), s = {capped}", capped=written("score", cap))
        if isinstance(query, slice):
            scores[:, ~visible(trace.config, self.layer, len(trace))] = -np.inf
        elif key < first_visible(trace.config, self.layer, query):
            return Working(
                symbols,
                lambda: _(
                    "weight = 0: query {query} sees {window} tokens with itself, and key {key} is none of them",
                    key=key,
                    query=query,
                    window=trace.config.window(self.layer),
                ),
                0.0,
                (read,),
                0.0,
            )
        elif key > query:
            return Working(
                symbols,
                lambda: _("weight = 0: key {key} comes after query {query}, masked", key=key, query=query),
                0.0,
                (read,),
                0.0,
            )
        if not isinstance(query, slice):
            scores[: first_visible(trace.config, self.layer, query)] = -np.inf
        unseen = masked(trace, self.name)[head, query, up_to(query)]
        scores[unseen] = -np.inf
        largest = scores.max(-1, keepdims=True)
        below = scores - largest  # rounded itself, so that its exponential is off by as many times its size
        exps = np.exp(below)
        total = exps.sum(-1, keepdims=True)
        weights = exps / total
        value = weights[..., key]

        def numbers() -> str:
            exponent, divisor = f"{number(scores[key])} − {factor(largest.item())}", number(total.item())
            if unseen[key]:
                return _("weight = 0: query {query} may not look at key {key}", key=key, query=query)
            quotients = f"e^({exponent}) / {divisor} = {number(exps[key])} / {divisor}"
            weight = _("weight = {quotients} = {value}", quotients=quotients, value=number(value))
            return f"s = {written(number(plain[key]), cap)} = {number(scores[key])}; {weight}" if cap else weight

        sizes = weights * (1 - np.where(np.isinf(below), 0, below))
        return Working(symbols, numbers, value, (read,), sizes[..., key])


@dataclass(frozen=True)
class Fetched:
    """z, the values weighted by the pattern; values (G, T, d) may serve groups of heads."""

    pattern: str
    v: str
    source: Source

    def working(self, trace: Trace, at: Index) -> Working:
        head, query, dim = at
        weights, from_pattern = take(trace, self.pattern, head, query, up_to(query))
        v, from_v = take(trace, self.v, group_of(trace, self.v, head), up_to(query), dim)
        value = weights @ v
        return Working(
            _("z = Σ weight · v, over the keys up to the query"),
            lambda: f"z = {products(weights, v)} = {number(value)}",
            value,
            (from_pattern, from_v),
            np.abs(weights) @ np.abs(v),
        )


def up_to(query: int | slice) -> slice:
    """The keys that a query sees; all where it is all queries."""
    return query if isinstance(query, slice) else slice(None, query + 1)


def group_of(trace: Trace, name: str, head: int | slice) -> int | np.ndarray:
    """Which head of the keys or values serves a head of queries, or which serves each of all."""
    return np.arange(trace.config.num_heads)[head] // (trace.config.num_heads // len(trace[name]))
