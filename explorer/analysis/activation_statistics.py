"""Summary statistics and histograms of captured values."""

from dataclasses import dataclass

import numpy as np

from explorer.tracing.trace import Trace


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
    counts, _ = np.histogram(counted_values, edges)
    return edges, counts / counts.sum()
