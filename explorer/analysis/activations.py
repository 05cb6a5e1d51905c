"""Sizes and shapes of captured values."""

from dataclasses import dataclass

import numpy as np

from explorer.tracing.trace import Trace


@dataclass(frozen=True)
class Statistics:
    """Of all elements of an array."""

    mean: float
    std: float
    rms: float
    smallest: float
    largest: float
    zeros: float

    @classmethod
    def of(cls, values: np.ndarray) -> "Statistics":
        """`zeros` is the share of elements that are exactly 0."""
        values = values.astype(np.float64)
        return cls(
            mean=float(values.mean()),
            std=float(values.std()),
            rms=float(np.sqrt((values**2).mean())),
            smallest=float(values.min()),
            largest=float(values.max()),
            zeros=float((values == 0).mean()),
        )


def matrix_at(trace: Trace, tap: str, head: int) -> np.ndarray:
    """The value at a tap as tokens × dimensions: (T, N); of a value a head, the one the chosen head works with."""
    return trace.of_head(tap, head) if trace[tap].ndim == 3 else trace[tap]


def histogram_of(values: np.ndarray, some: np.ndarray, bins: int = 60) -> tuple[np.ndarray, np.ndarray]:
    """The edges of equal bins from the smallest to the largest of `values`, and the share of `some` in each."""
    edges = np.linspace(values.min(), max(values.max(), values.min() + 1e-9), bins + 1)
    counts, _ = np.histogram(some, edges)
    return edges, counts / counts.sum()
