"""Derivations of the fractions in a histogram of activations."""

from explorer.analysis.activation_statistics import compute_histogram, tap_matrix
from explorer.explain.calculation import Calculation, Input
from explorer.explain.clicked_point import get_element
from explorer.explain.derivation import Derivation
from explorer.explain.labels import format_token_position
from explorer.explain.notation import format_number
from explorer.explain.source_line import SourceLine
from explorer.tracing.trace import Trace
from explorer.translations import _


def histogram_share(trace: Trace, tap: str, head: int, query: int | None, bin_index: int) -> Derivation:
    """Derive the fraction of values within one bin of the histogram, over all tokens, or at the query."""
    values = tap_matrix(trace, tap, head).astype(float)
    edges, shares = compute_histogram(values, values if query is None else values[query])
    displayed_value, counted_values = (
        get_element(shares, bin_index),
        (values if query is None else values[query]).ravel(),
    )
    last = bin_index == len(shares) - 1
    in_bin = (counted_values >= edges[bin_index]) & (
        (counted_values <= edges[bin_index + 1]) if last else (counted_values < edges[bin_index + 1])
    )
    value = float(in_bin.sum()) / len(counted_values)
    working = Calculation(
        _("how many values lie there / how many there are"),
        lambda: f"{int(in_bin.sum()):,} / {len(counted_values):,} = {format_number(value)}",
        value,
        (Input(tap, (), trace[tap].shape),),
    )
    return Derivation(
        _(
            "share of {tap} from {low} to {high}",
            tap=tap,
            low=format_number(edges[bin_index]),
            high=format_number(edges[bin_index + 1]),
        ),
        _("over all tokens") if query is None else format_token_position(trace, query),
        displayed_value,
        working,
        SourceLine("explorer/analysis/activation_statistics.py", "return edges, counts / counts.sum()"),
    )
