"""Derivations of differences between two runs."""

import math

from explorer.analysis.residual import residual_stages
from explorer.analysis.run_difference import head_distances, relative_stream_distance, surprisal_difference
from explorer.explain.arithmetic import mean, quotient, surprisal
from explorer.explain.clicked_point import get_element, get_item
from explorer.explain.derivation import Calculation, Derivation, read_input
from explorer.explain.notation import format_number, format_token_position
from explorer.explain.source_code import SourceLine
from explorer.tracing.comparison import Comparison
from explorer.translations import _

RUN_DIFFERENCE = "explorer/analysis/run_difference.py"


def format_aligned_tokens(comparison: Comparison, position: int) -> str:
    """Format a token and its aligned token."""
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
    return Derivation(
        _("how far apart the streams are at {stage}", stage=stage.name),
        format_aligned_tokens(comparison, position),
        displayed_value,
        quotient(_("‖x of A − x of B‖ / ‖x of B‖"), distance, norm, (from_a, from_b)),
        SourceLine(RUN_DIFFERENCE, "stage_distances.append(np.divide(distances, norms"),
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
        mean(symbols, distances, (from_a, from_b)),
        SourceLine(RUN_DIFFERENCE, "return np.stack([np.nanmean(pattern_distances("),
    )


def _jensen_shannon(pairs: list[tuple[float, float]]) -> float:
    def term(x: float, middle: float) -> float:
        return x * math.log2(x / middle) if x > 0 else 0.0

    total = math.fsum((term(p, (p + q) / 2) + term(q, (p + q) / 2)) / 2 for p, q in pairs)
    return math.sqrt(min(1.0, max(0.0, total)))


def surprisal_gap(comparison: Comparison, position: int) -> Derivation | None:
    """Derive a token's surprisal in A minus that of the aligned token in B, in bits.

    None if there is nothing to compare.
    """
    displayed_value = get_element(surprisal_difference(comparison), position)
    partner = comparison.alignment.partners[position]
    if not position or not partner:
        return None
    a, from_a = read_input(comparison.trace, "logits", position - 1)
    b, from_b = read_input(comparison.other, "logits", partner - 1)
    bits_a = surprisal(a, comparison.trace.token_ids[position], ()).value
    bits_b = surprisal(b, comparison.other.token_ids[partner], ()).value
    numbers = {"a": format_number(bits_a), "b": format_number(bits_b), "less": format_number(bits_a - bits_b)}
    return Derivation(
        _("how much more A is surprised, in bits"),
        format_aligned_tokens(comparison, position),
        displayed_value,
        Calculation(
            _("A − B, each −log₂ p"), lambda: _("{a} − {b} = {less} bits", **numbers), bits_a - bits_b, (from_a, from_b)
        ),
        SourceLine(RUN_DIFFERENCE, "return surprisal(comparison.trace) - "),
    )
