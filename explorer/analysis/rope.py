"""Rotary position embeddings (RoPE) of a run."""

from dataclasses import dataclass

import numpy as np

from explorer.architecture import attention as architecture
from explorer.tracing.trace import Trace


def wrap_angles(angles: np.ndarray) -> np.ndarray:
    """Wrap angles into (-π, π]; same shape."""
    return np.pi - (np.pi - angles) % (2 * np.pi)


def split_pairs(vector: np.ndarray, layout: str) -> np.ndarray:
    """Split a vector into the pairs of dimensions that RoPE rotates together, (d,) -> (F, 2).

    Pair i has dimensions 2i and 2i + 1 in the layout "adjacent", i and i + d/2 in "half_split".
    """
    return vector.reshape(-1, 2) if layout == "adjacent" else vector.reshape(2, -1).T


@dataclass(frozen=True)
class RotatedPairs:
    """The pairs of dimensions of one head's vector at one position.

    Attributes:
        before, after: (F, 2), the two numbers of each pair before and after its rotation.
        angles: (F,), rotation angle of each pair, radians.
        error: largest difference of `after` from `before` rotated by `angles` and scaled if the model scales.
    """

    before: np.ndarray
    after: np.ndarray
    angles: np.ndarray
    error: float


def rotation_angles(trace: Trace, layer: int) -> np.ndarray:
    """Return the rotation angles of a layer in radians, (T, F); 0 if the layer has no RoPE."""
    angles = trace[architecture.angles_tap(trace.config, layer)]
    return angles if trace.config.has_rope(layer) else np.zeros_like(angles)


def pair_scales(trace: Trace, layer: int) -> np.ndarray | float:
    """Return the factor on each rotated pair, (F,), or 1 without scaling."""
    factors = architecture.rotary_attention_factors(trace.config, layer)
    return 1.0 if factors is None else factors


def rotated_pairs(trace: Trace, vector: str, layer: int, head: int, position: int) -> RotatedPairs:
    """Return the pairs of "q" or "k" at a position."""
    before, after = (
        split_pairs(trace.head_value(f"blocks.{layer}.attn.{name}", head)[position], trace.config.rope_layout)
        for name in (vector, f"{vector}_rot")
    )
    angles = rotation_angles(trace, layer)[position]  # (F,)
    rotated = (before[:, 0] + 1j * before[:, 1]) * np.exp(1j * angles) * pair_scales(trace, layer)
    error = np.abs(rotated - (after[:, 0] + 1j * after[:, 1])).max()
    return RotatedPairs(before, after, angles, float(error))


def frequencies(angles: np.ndarray) -> np.ndarray:
    """Return the angular frequency of each pair in radians per position, (F,), from captured angles (T, F).

    NaN for a single token.
    """
    angles = angles.astype(np.float64)
    steps = len(angles) - 1
    return (angles[-1] - angles[0]) / steps if steps else np.full(angles.shape[1], np.nan)


def pair_products(trace: Trace, layer: int, head: int, query: int, key: int) -> np.ndarray:
    """Return the contribution of each pair of q and k to the score before rotation, as complex numbers (F,).

    These are |q||k| e^{iφ} / √d, times the square of the scaling factor of rotated pairs, with φ the angle from
    k's pair to q's. At a distance of Δ positions the pair contributes |q||k| cos(φ + Δω) / √d, the real part of
    this times e^{iΔω} (Su et al. 2021, §3.4.3).
    """
    q, k = (
        rotated_pairs(trace, vector, layer, head, position).before.astype(np.float64) @ (1, 1j)
        for vector, position in (("q", query), ("k", key))
    )
    return q * k.conj() * pair_scales(trace, layer) ** 2 / trace.config.divisor


def score_by_pair(trace: Trace, layer: int, head: int, query: int, key: int) -> np.ndarray:
    """Return the contribution of each pair to the score, (F,): |q||k| cos(φ + Δω) / √d.

    The contributions sum to the score.
    """
    angles = rotation_angles(trace, layer)
    angle_differences = angles[query].astype(np.float64) - angles[key]  # (F,) Δω
    return (pair_products(trace, layer, head, query, key) * np.exp(1j * angle_differences)).real


def score_by_distance(trace: Trace, layer: int, head: int, query: int, key: int, distances: np.ndarray) -> np.ndarray:
    """Return the score of the same q and k, before rotation, at other distances in positions, (n,)."""
    angle_differences = np.outer(distances, np.nan_to_num(frequencies(rotation_angles(trace, layer))))  # (n, F)
    return (pair_products(trace, layer, head, query, key) * np.exp(1j * angle_differences)).real.sum(-1)
