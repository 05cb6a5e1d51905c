"""Rotary positions of a live run."""

from dataclasses import dataclass

import numpy as np

from explorer.trace import Trace


def wrapped(angles: np.ndarray) -> np.ndarray:
    """Angles brought into (-π, π]; same shape."""
    return np.pi - (np.pi - angles) % (2 * np.pi)


def in_pairs(vector: np.ndarray, layout: str) -> np.ndarray:
    """(d,) -> (F, 2), the dimensions that turn together.

    Pair i is dimensions 2i and 2i + 1 in the layout "adjacent", i and i + d/2 in "half_split".
    """
    return vector.reshape(-1, 2) if layout == "adjacent" else vector.reshape(2, -1).T


@dataclass(frozen=True)
class RotatedPairs:
    """The pairs of dimensions of one head's vector at one position.

    Attributes:
        before, after: (F, 2), the two numbers of each pair before and after its rotation.
        angles: (F,), by which each pair was turned, radians.
        error: largest difference of `after` from `before` turned by `angles`.
    """

    before: np.ndarray
    after: np.ndarray
    angles: np.ndarray
    error: float


def rotated_pairs(trace: Trace, vector: str, layer: int, head: int, position: int) -> RotatedPairs:
    """The pairs of "q" or "k" at a position."""
    before, after = (
        in_pairs(trace.of_head(f"blocks.{layer}.attn.{name}", head)[position], trace.config.rope_layout)
        for name in (vector, f"{vector}_rot")
    )
    angles = trace["rope.angles"][position]  # (F,)
    turned = (before[:, 0] + 1j * before[:, 1]) * np.exp(1j * angles)
    error = np.abs(turned - (after[:, 0] + 1j * after[:, 1])).max()
    return RotatedPairs(before, after, angles, float(error))
