"""Positions of a run: rotary embeddings (RoPE), and added vectors with their cosine similarities."""

from dataclasses import dataclass

import numpy as np

from explorer.analysis.trace_cache import cache_per_trace
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


def context_position_embeddings(trace: Trace) -> np.ndarray:
    """Return the position embedding of every position of the context, (C, D)."""
    config = trace.config
    if config.position == "learned":
        return trace.weights["position_embedding.weight"][:]
    return sinusoidal_embeddings(np.arange(config.context_length), config.d_model)


def sinusoidal_embeddings(positions: np.ndarray, d_model: int) -> np.ndarray:
    """Return sinusoidal position embeddings, (n, D) (Vaswani et al. 2017, §3.5).

    Dimension 2i of position m is sin(m / 10000^(2i/D)), dimension 2i + 1 its cosine.
    """
    angles = np.outer(positions, angular_frequencies(d_model))
    return np.stack([np.sin(angles), np.cos(angles)], axis=-1).reshape(len(positions), d_model)


def angular_frequencies(d_model: int) -> np.ndarray:
    """Return the angular frequencies 10000^(−2i/D) in radians per position, (D/2,)."""
    return 10000.0 ** (-np.arange(0, d_model, 2) / d_model)


def sinusoidal_cosine(distances: np.ndarray, d_model: int) -> np.ndarray:
    """Return the cosine similarity of two sinusoidal positions by their distance, (n,).

    sin a sin b + cos a cos b = cos(a − b), so the dot product of positions m and n is Σᵢ cos((m − n) ωᵢ), and D/2
    of a position with itself.
    """
    return np.cos(np.outer(distances, angular_frequencies(d_model))).mean(-1)


def position_cosines(trace: Trace) -> np.ndarray:
    """Return the cosine similarities of the position embeddings of the run, (T, T); 0 for a zero vector."""
    vectors = trace["position_embed"].astype(np.float64)
    norms = np.linalg.norm(vectors, axis=-1, keepdims=True)
    units = np.divide(vectors, norms, out=np.zeros_like(vectors), where=norms > 0)
    return units @ units.T


@dataclass(frozen=True)
class CosineByDistance:
    """Statistics of `cosines` over all pairs of positions at the same distance, (T,) each, by distance from 0."""

    minimum: np.ndarray
    mean: np.ndarray
    maximum: np.ndarray


@cache_per_trace
def cosines_by_distance(trace: Trace) -> CosineByDistance:
    """Return the least, mean and largest cosine of position vectors at each distance (T,)."""
    cosine_matrix = position_cosines(trace)
    diagonals = [cosine_matrix.diagonal(distance) for distance in range(len(trace))]
    return CosineByDistance(
        *(np.array([reduction(diagonal) for diagonal in diagonals]) for reduction in (np.min, np.mean, np.max))
    )


VECTOR_KINDS = ("token", "position", "sum")


@cache_per_trace
def token_and_position_norms(trace: Trace) -> np.ndarray:
    """Return ‖x‖₂ of `VECTOR_KINDS`, (3, T): token embedding, position embedding, and their sum."""
    tokens = trace.weights["token_embedding.weight"][list(trace.token_ids)] * trace.config.embedding_scale
    return np.stack([np.linalg.norm(x, axis=-1) for x in (tokens, trace["position_embed"], trace["embed"])])
