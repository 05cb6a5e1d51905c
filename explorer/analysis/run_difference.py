"""Differences between two runs at aligned tokens: residual streams, attention patterns and predictions."""

import math
from dataclasses import dataclass

import numpy as np

from explorer.analysis.intervention_effects import comparison_rounding_threshold
from explorer.analysis.next_token import (
    align_to_vocabulary,
    jensen_shannon_distance,
    next_token_distribution,
    surprisal,
    token_probability,
)
from explorer.analysis.residual import residual_stages
from explorer.explain import arithmetic
from explorer.explain.derivation import Calculation, Derivation, get_element, get_item, read_input
from explorer.explain.notation import format_factor, format_six_digits, format_token_position
from explorer.explain.source_code import SourceLine
from explorer.tracing.comparison import Comparison
from explorer.tracing.trace import Trace
from explorer.translations import _


def run_names(comparison: Comparison) -> tuple[str, str]:
    """Return the names of the runs: of one with interventions and the same without, or A and B."""
    return (_("changed"), _("unchanged")) if comparison.is_unchanged else ("A", "B")


def difference_name(comparison: Comparison) -> str:
    """Return the name of a difference of the runs, such as A − B."""
    return " − ".join(run_names(comparison))


def relative_stream_distance(comparison: Comparison) -> np.ndarray:
    """Return ‖x_A − x_B‖ / ‖x_B‖ of the residual stream at A's `stages`, (S, T); NaN for unaligned tokens or x_B = 0.

    Raises:
        KeyError: B lacks one of A's stages.
        ValueError: the widths of the streams differ.
    """
    stage_distances = []
    for stage in residual_stages(comparison.trace):
        vector_pair = comparison.trace[stage.tap], comparison.aligned_other(stage.tap)
        vectors_a, vectors_b = (vectors.astype(np.float64) for vectors in vector_pair)  # (T, D)
        distances, norms = np.linalg.norm(vectors_a - vectors_b, axis=-1), np.linalg.norm(vectors_b, axis=-1)
        stage_distances.append(np.divide(distances, norms, out=np.full_like(distances, np.nan), where=norms > 0))
    return np.stack(stage_distances)


def pattern_distances(comparison: Comparison, layer: int) -> np.ndarray:
    """Return the Jensen-Shannon distances of aligned queries' attention weights, (H, T) in [0, 1].

    Over the keys of both runs, with aligned keys identified; NaN for queries without an aligned position.

    Raises:
        KeyError: B has no such layer.
        ValueError: the numbers of heads differ.
    """
    name = f"blocks.{layer}.attn.pattern"
    patterns_a, patterns_b = comparison.trace[name], comparison.other[name]
    if patterns_a.shape[0] != patterns_b.shape[0]:
        raise ValueError(f"A has {patterns_a.shape[0]} heads a layer, B {patterns_b.shape[0]}")
    rows = comparison.take_aligned(patterns_b, -2)  # (H, T, T') of the queries' partners
    aligned = np.nan_to_num(comparison.take_aligned(rows, -1))  # (H, T, T) of the keys' partners
    aligned[np.isnan(rows).all(-1)] = np.nan
    unaligned_keys = [key for key, partner in enumerate(comparison.alignment.inverse) if partner is None]
    extra = rows[..., unaligned_keys]  # (H, T, n): B's keys that stand for none of A's
    p = np.concatenate([patterns_a, np.zeros_like(extra)], axis=-1)
    return jensen_shannon_distance(p, np.concatenate([aligned, extra], axis=-1))


def head_distances(comparison: Comparison) -> np.ndarray:
    """Return the mean of `pattern_distances` over the aligned queries, (L, H)."""
    layers = range(comparison.trace.config.num_layers)
    return np.stack([np.nanmean(pattern_distances(comparison, layer), axis=-1) for layer in layers])


def surprisal_difference(comparison: Comparison) -> np.ndarray:
    """Return the surprisal of each token in A − that of the aligned token in B, in bits, (T,).

    NaN if there is none.
    """
    return surprisal(comparison.trace) - comparison.take_aligned(surprisal(comparison.other))


def next_token_probabilities(comparison: Comparison, query: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the next-token probabilities of both runs after a query of A, (V,) each, by A's vocabulary.

    After a query of A, and after the nearest aligned position in B; NaN for tokens that B's vocabulary lacks.
    """
    trace, other = comparison.runs
    probabilities_b = next_token_distribution(other, comparison.alignment.nearest_aligned(query)).plain
    return next_token_distribution(trace, query).plain, align_to_vocabulary(
        probabilities_b, other.vocabulary, trace.vocabulary
    )


def probability_moved(comparison: Comparison, query: int) -> float:
    """Return the next token's probability that moved to other tokens, ½ Σ |p_A − p_B| in [0, 1]."""
    probabilities_a, probabilities_b = next_token_probabilities(comparison, query)
    return float(np.abs(probabilities_a - probabilities_b).sum() / 2)


@dataclass(frozen=True)
class FirstDifference:
    """The first value, in the order of computation, that differs by more than rounding error.

    Attributes:
        tap: the value's name.
        position: first position of A at which it differs.
        partner: the aligned position of B.
        largest: largest |A − B| at this position.
    """

    tap: str
    position: int
    partner: int
    largest: float


def first_difference(comparison: Comparison) -> FirstDifference | None:
    """Return the first difference of the runs at aligned tokens; None if they agree up to rounding.

    The threshold is `comparison_rounding_threshold` times the largest element of the value, or times 1 if all are
    smaller.
    """
    limit = comparison_rounding_threshold(comparison)
    for tap, values_a in comparison.trace.values.items():
        if tap not in comparison.other:
            continue
        values_b = comparison.aligned_other(tap)
        if values_a.shape != values_b.shape:
            continue
        with np.errstate(invalid="ignore"):  # masked scores are infinite in both
            differences = np.abs(values_a - values_b)
        differences = (
            np.nan_to_num(differences.max(-1), nan=0.0)
            if differences.ndim < 3
            else np.nan_to_num(differences).max((0, -1))
        )
        size = np.abs(values_a[np.isfinite(values_a)]).max(initial=1.0)
        (positions,) = np.nonzero(differences > limit * size)
        if len(positions):
            position = int(positions[0])
            partner = comparison.alignment.partners[position]
            return FirstDifference(tap, position, partner, float(differences[position]))
    return None


FILE = "explorer/analysis/run_difference.py"


def format_aligned_tokens(comparison: Comparison, position: int) -> str:
    """Format a token and its aligned token; of the same run without interventions, the token alone."""
    if comparison.is_unchanged:
        return format_token_position(comparison.trace, position)
    partner = comparison.alignment.partners[position]
    return _(
        "{token} of A beside {other} of B",
        token=format_token_position(comparison.trace, position),
        other=format_token_position(comparison.other, partner),
    )


def residual_distance(comparison: Comparison, row: int, position: int) -> Derivation | None:
    """Derive the relative distance of two tokens' streams at one of A's `stages`; None for an unaligned token."""
    stage = get_item(residual_stages(comparison.trace), row)
    displayed_value = get_element(relative_stream_distance(comparison), row, position)
    partner = comparison.alignment.partners[position]
    if partner is None:
        return None
    vector_a, from_a = read_input(comparison.trace, stage.tap, position)
    vector_b, from_b = read_input(comparison.other, stage.tap, partner)
    distance, norm = (math.sqrt(math.fsum(x * x)) for x in (vector_a - vector_b, vector_b))
    first, second = run_names(comparison)
    return Derivation(
        _("how far apart the streams are at {stage}", stage=stage.name),
        format_aligned_tokens(comparison, position),
        displayed_value,
        arithmetic.quotient(
            _("‖x − y‖ / ‖y‖ (x: {first}, y: {second})", first=first, second=second), distance, norm, (from_a, from_b)
        ),
        SourceLine(FILE, "stage_distances.append(np.divide(distances, norms"),
    )


def head_attention_distance(comparison: Comparison, layer: int, head: int) -> Derivation:
    """Derive the mean Jensen-Shannon distance of a head's attention in both runs."""
    displayed_value = get_element(head_distances(comparison), layer, head)
    name = f"blocks.{layer}.attn.pattern"
    (pattern_a, from_a), (pattern_b, from_b) = (read_input(run, name, head) for run in comparison.runs)
    partners, partners_of_b = comparison.alignment.partners, comparison.alignment.inverse
    distances = []
    for query, partner in enumerate(partners):
        if partner is None:
            continue
        pairs = [(pattern_a[query, key], 0.0 if p is None else pattern_b[partner, p]) for key, p in enumerate(partners)]
        pairs += [(0.0, pattern_b[partner, key]) for key, p in enumerate(partners_of_b) if p is None]
        distances.append(_jensen_shannon(pairs))
    symbols = _("mean over queries of √(½ Σ p log₂ (p / m) + ½ Σ q log₂ (q / m)), m = ½ (p + q)")
    return Derivation(
        _("Jensen-Shannon distance of the head’s weights"),
        _(
            "layer {layer} head {head}, over {count} pairs of queries",
            layer=layer,
            head=head,
            count=len(distances),
        ),
        displayed_value,
        arithmetic.mean(symbols, distances, (from_a, from_b)),
        SourceLine(FILE, "return np.stack([np.nanmean(pattern_distances("),
    )


def _jensen_shannon(pairs: list[tuple[float, float]]) -> float:
    def term(x: float, middle: float) -> float:
        return x * math.log2(x / middle) if x > 0 else 0.0

    total = math.fsum((term(p, (p + q) / 2) + term(q, (p + q) / 2)) / 2 for p, q in pairs)
    return math.sqrt(min(1.0, max(0.0, total)))


def surprisal_gap(comparison: Comparison, position: int) -> Derivation | None:
    """Derive a token's surprisal in A − that of the aligned token in B, in bits; None if there is none."""
    displayed_value = get_element(surprisal_difference(comparison), position)
    partner = comparison.alignment.partners[position]
    if not position or not partner:
        return None
    a, from_a = read_input(comparison.trace, "logits", position - 1)
    b, from_b = read_input(comparison.other, "logits", partner - 1)
    bits_a = arithmetic.surprisal(a, comparison.trace.token_ids[position], ()).value
    bits_b = arithmetic.surprisal(b, comparison.other.token_ids[partner], ()).value
    numbers = {"a": format_six_digits(bits_a), "b": format_factor(bits_b), "less": format_six_digits(bits_a - bits_b)}
    return Derivation(
        _("difference of the surprisals, in bits"),
        format_aligned_tokens(comparison, position),
        displayed_value,
        Calculation(
            _("{difference}, each −log₂ p", difference=difference_name(comparison)),
            lambda: _("{a} − {b} = {less} bits", **numbers),
            bits_a - bits_b,
            (from_a, from_b),
        ),
        SourceLine(FILE, "return surprisal(comparison.trace) - "),
    )


def next_token_probability(comparison: Comparison, query: int, token_id: int, run: Trace) -> Derivation | None:
    """Derive the probability in a run of a token of A's vocabulary; None for one that B's model does not have."""
    source = SourceLine("explorer/analysis/next_token.py", "plain=sampling_distribution(")
    probabilities_a, probabilities_b = next_token_probabilities(comparison, query)
    if run is comparison.trace:
        return token_probability(run, query, token_id, float(probabilities_a[token_id]), source)
    if np.isnan(probabilities_b[token_id]):
        return None
    vocabulary = comparison.trace.vocabulary
    own_id = token_id if run.vocabulary == vocabulary else list(run.vocabulary).index(vocabulary[token_id])
    position = comparison.alignment.nearest_aligned(query)
    return token_probability(run, position, own_id, float(probabilities_b[token_id]), source)
