"""Position embeddings, sinusoidal or learned, and their cosine similarities."""

from dataclasses import dataclass

import numpy as np

from explorer.analysis.trace_cache import cache_per_trace
from explorer.tracing.trace import Trace


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
