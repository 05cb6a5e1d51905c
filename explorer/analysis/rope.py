"""Rotary positions of a live run."""

from dataclasses import dataclass

import numpy as np

from explorer.architecture import attention as architecture
from explorer.tracing.trace import Trace


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
        error: largest difference of `after` from `before` turned by `angles`, and scaled where the model does.
    """

    before: np.ndarray
    after: np.ndarray
    angles: np.ndarray
    error: float


def angles_of(trace: Trace, layer: int) -> np.ndarray:
    """(T, F) by which a layer turns every position's pairs, radians: 0 where it turns nothing."""
    angles = trace[architecture.angles_of(trace.config, layer)]
    return angles if trace.config.rotates(layer) else np.zeros_like(angles)


def scales(trace: Trace, layer: int) -> np.ndarray | float:
    """(F,) what each pair is multiplied by as it turns; 1 where it only turns."""
    found = architecture.rotation_scales(trace.config, layer)
    return 1.0 if found is None else found


def rotated_pairs(trace: Trace, vector: str, layer: int, head: int, position: int) -> RotatedPairs:
    """The pairs of "q" or "k" at a position."""
    before, after = (
        in_pairs(trace.of_head(f"blocks.{layer}.attn.{name}", head)[position], trace.config.rope_layout)
        for name in (vector, f"{vector}_rot")
    )
    angles = angles_of(trace, layer)[position]  # (F,)
    turned = (before[:, 0] + 1j * before[:, 1]) * np.exp(1j * angles) * scales(trace, layer)
    error = np.abs(turned - (after[:, 0] + 1j * after[:, 1])).max()
    return RotatedPairs(before, after, angles, float(error))


def frequencies(angles: np.ndarray) -> np.ndarray:
    """(F,) radians a position by which each pair turns, read off captured angles (T, F); NaN of a single token."""
    angles = angles.astype(np.float64)
    steps = len(angles) - 1
    return (angles[-1] - angles[0]) / steps if steps else np.full(angles.shape[1], np.nan)


def matches(trace: Trace, layer: int, head: int, query: int, key: int) -> np.ndarray:
    """(F,) complex: what each pair of q and k, before any rotation, adds to the score, as |q||k| e^{iφ} / √d, times the
    square of what the model scales turned pairs by.

    φ is the angle from k's pair to q's. At a distance of Δ positions the pair adds |q||k| cos(φ + Δω) / √d, the real
    part of this times e^{iΔω} (Su et al. 2021, §3.4.3).
    """
    q, k = (
        rotated_pairs(trace, vector, layer, head, position).before.astype(np.float64) @ (1, 1j)
        for vector, position in (("q", query), ("k", key))
    )
    return q * k.conj() * scales(trace, layer) ** 2 / trace.config.divisor


def score_by_pair(trace: Trace, layer: int, head: int, query: int, key: int) -> np.ndarray:
    """(F,) |q||k| cos(φ + Δω) / √d of each pair at its distance in the run, which add up to the score."""
    angles = angles_of(trace, layer)
    turned = angles[query].astype(np.float64) - angles[key]  # (F,) Δω
    return (matches(trace, layer, head, query, key) * np.exp(1j * turned)).real


def score_by_distance(trace: Trace, layer: int, head: int, query: int, key: int, distances: np.ndarray) -> np.ndarray:
    """(n,) the score that the same q and k, before rotation, would have at other distances (n,) in positions."""
    turned = np.outer(distances, np.nan_to_num(frequencies(angles_of(trace, layer))))  # (n, F)
    return (matches(trace, layer, head, query, key) * np.exp(1j * turned)).real.sum(-1)
