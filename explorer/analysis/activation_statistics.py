"""Summary statistics and histograms of captured values."""

from dataclasses import dataclass

import numpy as np

from explorer.explain.derivation import Calculation, Derivation, Input, get_element
from explorer.explain.notation import format_six_digits, format_token_position
from explorer.explain.source_code import SourceLine
from explorer.tracing.trace import Trace
from explorer.translations import _


@dataclass(frozen=True)
class Statistics:
    """Summary statistics of all elements of an array."""

    mean: float
    std: float
    rms: float
    smallest: float
    largest: float
    zeros: float

    @classmethod
    def from_array(cls, values: np.ndarray) -> "Statistics":
        """Compute the statistics of an array; `zeros` is the fraction of elements that are exactly 0."""
        values = values.astype(np.float64)
        return cls(
            mean=float(values.mean()),
            std=float(values.std()),
            rms=float(np.sqrt((values**2).mean())),
            smallest=float(values.min()),
            largest=float(values.max()),
            zeros=float((values == 0).mean()),
        )


def tap_matrix(trace: Trace, tap: str, head: int) -> np.ndarray:
    """Return the value at a tap as a matrix tokens × dimensions, (T, N).

    For a value with a head axis, this is the matrix that the given head uses.
    """
    return trace.head_value(tap, head) if trace[tap].ndim == 3 else trace[tap]


def compute_histogram(values: np.ndarray, counted_values: np.ndarray, bins: int = 60) -> tuple[np.ndarray, np.ndarray]:
    """Return the edges of equal bins over the range of `values`, and the fraction of `counted_values` in each bin."""
    edges = np.linspace(values.min(), max(values.max(), values.min() + 1e-9), bins + 1)
    counts, _edges = np.histogram(counted_values, edges)
    return edges, counts / counts.sum()


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
        lambda: f"{int(in_bin.sum()):,} / {len(counted_values):,} = {format_six_digits(value)}",
        value,
        (Input(tap, (), trace[tap].shape),),
    )
    return Derivation(
        _(
            "share of {tap} from {low} to {high}",
            tap=tap,
            low=format_six_digits(edges[bin_index]),
            high=format_six_digits(edges[bin_index + 1]),
        ),
        _("over all tokens") if query is None else format_token_position(trace, query),
        displayed_value,
        working,
        SourceLine("explorer/analysis/activation_statistics.py", "return edges, counts / counts.sum()"),
    )
