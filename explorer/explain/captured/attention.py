"""Formulas of rotation, scores, pattern and head outputs."""

from dataclasses import dataclass

import numpy as np

from explorer.architecture.formulas import (
    first_visible_key,
    score_divisor_formula,
    score_divisor_in_numbers,
    softcap,
    softcap_formula,
    visibility_mask,
)
from explorer.explain.captured.formulas import dot_products, masked_attention_edges, vector_norms
from explorer.explain.derivation import ALL, Calculation, Index, read_input
from explorer.explain.notation import format_dot_product, format_factor, format_six_digits
from explorer.explain.source_code import SourceLine
from explorer.tracing.trace import Trace
from explorer.translations import N_, _, translate

ROTATION_FORMULAS = (
    N_("{symbol} = a cos φ − b sin φ, the first of pair {pair}"),
    N_("{symbol} = a sin φ + b cos φ, the second of pair {pair}"),
)


@dataclass(frozen=True)
class RotationFormula:
    """Rotation of pairs of dimensions (a, b) by their angle φ: (a cos φ − b sin φ, a sin φ + b cos φ).

    Times `scales` (F,) if the model scales rotated pairs.
    """

    symbol: str
    x: str
    angles: str
    layout: str
    source: SourceLine
    scales: np.ndarray | None = None

    def calculate(self, trace: Trace, index: Index) -> Calculation:
        head, token, dim = index
        pairs, adjacent, all_dims = trace.config.d_head // 2, self.layout == "adjacent", isinstance(dim, slice)
        if all_dims:
            pair, half = ALL, 0
            dims = (slice(0, None, 2), slice(1, None, 2)) if adjacent else (slice(pairs), slice(pairs, None))
        else:
            pair, half = (dim // 2, dim % 2) if adjacent else (dim % pairs, dim // pairs)
            dims = (2 * pair, 2 * pair + 1) if adjacent else (pair, pair + pairs)
        (a, from_a), (b, from_b) = (read_input(trace, self.x, head, token, dim) for dim in dims)
        angle, from_angle = read_input(trace, self.angles, token, pair)
        scale = 1.0 if self.scales is None else self.scales[pair]
        cos, sin = np.cos(angle) * scale, np.sin(angle) * scale
        rotated, size = (a * cos - b * sin, a * sin + b * cos), np.hypot(a, b) * scale
        value, sizes = rotated[half], size
        if all_dims:
            value, sizes = (self.interleave(*halves) for halves in (rotated, (size, size)))

        def numbers() -> str:
            (one, other), sign = (("cos", "sin"), "−") if half == 0 else (("sin", "cos"), "+")
            terms = (
                f"{format_factor(a)} · {one} {format_six_digits(angle)} {sign} "
                f"{format_factor(b)} · {other} {format_six_digits(angle)}"
            )
            if self.scales is not None:
                terms = f"({terms}) · {format_six_digits(scale)}"
            return f"{self.symbol} = {terms} = {format_six_digits(value)}"

        symbols = translate(ROTATION_FORMULAS[half], symbol=self.symbol, pair=pair)
        if self.scales is not None:
            symbols = _("{symbols}, times the factor of the scaling", symbols=symbols)
        return Calculation(symbols, numbers, value, (from_a, from_b, from_angle), sizes)

    def interleave(self, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        """Interleave the two halves of every pair, twice (H, T, F) -> (H, T, d)."""
        pairs = np.stack((first, second), axis=-1 if self.layout == "adjacent" else -2)
        return pairs.reshape(*first.shape[:-1], -1)


@dataclass(frozen=True)
class AttentionScoreFormula:
    """Scores q·k / √d of every query and key, or with another divisor.

    Keys (G, T, d) may be shared by groups of the H query heads.
    """

    q: str
    k: str
    source: SourceLine

    def calculate(self, trace: Trace, index: Index) -> Calculation:
        head, query, key = index
        q, from_q = read_input(trace, self.q, head, query)
        k, from_k = read_input(trace, self.k, kv_head_index(trace, self.k, head), key)
        dot, score_divisor = dot_products(q, k), trace.config.divisor
        value = dot / score_divisor

        def numbers() -> str:
            if score_divisor == 1:
                return _("score = {sum} = {value}", sum=format_dot_product(q, k), value=format_six_digits(value))
            return _(
                "score = {sum} / {divisor} = {quotient} = {value}",
                sum=format_dot_product(q, k),
                divisor=score_divisor_in_numbers(trace.config),
                quotient=f"{format_six_digits(dot)} / {format_six_digits(score_divisor)}",
                value=format_six_digits(value),
            )

        sizes = dot_products(vector_norms(q), vector_norms(k)) / score_divisor
        symbols = _("score = q·k / {divisor}", divisor=score_divisor_formula(trace.config))
        return Calculation(symbols, numbers, value, (from_q, from_k), sizes)


@dataclass(frozen=True)
class AttentionPatternFormula:
    """Softmax of the scores, soft-capped if the model caps them, over the visible keys.

    0 for keys after the query, before the layer's window, or masked by interventions.
    """

    name: str
    scores: str
    layer: int
    source: SourceLine

    def calculate(self, trace: Trace, index: Index) -> Calculation:
        head, query, key = index
        scores, read = read_input(trace, self.scores, head, query, causal_slice(query))
        symbols, cap = _("weight = e^(score − max) / Σ e^(scores − max)"), trace.config.score_cap
        if cap:
            scores, plain = softcap(scores, cap), scores
            symbols = _("weight = e^(s − max) / Σ e^(s − max), s = {capped}", capped=softcap_formula("score", cap))
        if isinstance(query, slice):
            scores[:, ~visibility_mask(trace.config, self.layer, len(trace))] = -np.inf
        elif key < first_visible_key(trace.config, self.layer, query):
            return Calculation(
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
            return Calculation(
                symbols,
                lambda: _("weight = 0: key {key} comes after query {query}, masked", key=key, query=query),
                0.0,
                (read,),
                0.0,
            )
        if not isinstance(query, slice):
            scores[: first_visible_key(trace.config, self.layer, query)] = -np.inf
        is_masked = masked_attention_edges(trace, self.name)[head, query, causal_slice(query)]
        scores[is_masked] = -np.inf
        largest = scores.max(-1, keepdims=True)
        below = scores - largest  # rounded itself, so that its exponential is off by as many times its size
        exps = np.exp(below)
        total = exps.sum(-1, keepdims=True)
        weights = exps / total
        value = weights[..., key]

        def numbers() -> str:
            exponent, divisor = (
                f"{format_six_digits(scores[key])} − {format_factor(largest.item())}",
                format_six_digits(total.item()),
            )
            if is_masked[key]:
                return _("weight = 0: query {query} may not look at key {key}", key=key, query=query)
            quotients = f"e^({exponent}) / {divisor} = {format_six_digits(exps[key])} / {divisor}"
            weight = _("weight = {quotients} = {value}", quotients=quotients, value=format_six_digits(value))
            if not cap:
                return weight
            capped = softcap_formula(format_six_digits(plain[key]), cap)
            return f"s = {capped} = {format_six_digits(scores[key])}; {weight}"

        sizes = weights * (1 - np.where(np.isinf(below), 0, below))
        return Calculation(symbols, numbers, value, (read,), sizes[..., key])


@dataclass(frozen=True)
class HeadOutputFormula:
    """Head output z, the values weighted by the pattern; values (G, T, d) may be shared by groups of heads."""

    pattern: str
    v: str
    source: SourceLine

    def calculate(self, trace: Trace, index: Index) -> Calculation:
        head, query, dim = index
        weights, from_pattern = read_input(trace, self.pattern, head, query, causal_slice(query))
        v, from_v = read_input(trace, self.v, kv_head_index(trace, self.v, head), causal_slice(query), dim)
        value = weights @ v
        return Calculation(
            _("z = Σ weight · v, over the keys up to the query"),
            lambda: f"z = {format_dot_product(weights, v)} = {format_six_digits(value)}",
            value,
            (from_pattern, from_v),
            np.abs(weights) @ np.abs(v),
        )


def causal_slice(query: int | slice) -> slice:
    """Return the keys up to a query; all keys for all queries."""
    return query if isinstance(query, slice) else slice(None, query + 1)


def kv_head_index(trace: Trace, name: str, head: int | slice) -> int | np.ndarray:
    """Return the kv head of a query head, or the kv heads of all query heads."""
    return np.arange(trace.config.num_heads)[head] // (trace.config.num_heads // len(trace[name]))
