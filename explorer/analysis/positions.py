"""Vectors that are added for positions: waves or learned ones, and how alike they are."""

from dataclasses import dataclass

import numpy as np

from explorer.analysis.kept import kept_by_trace
from explorer.tracing.trace import Trace


def context_vectors(trace: Trace) -> np.ndarray:
    """(C, D) what the model adds at each position of its context: the rows of its table, or the waves."""
    config = trace.config
    if config.position == "learned":
        return trace.weights["position_embedding.weight"][:]
    return waves(np.arange(config.context_length), config.d_model)


def waves(positions: np.ndarray, d_model: int) -> np.ndarray:
    """(n, D): dimension 2i of position m is sin(m / 10000^(2i/D)), 2i + 1 its cosine (Vaswani et al. 2017, §3.5)."""
    angles = np.outer(positions, speeds(d_model))
    return np.stack([np.sin(angles), np.cos(angles)], axis=-1).reshape(len(positions), d_model)


def speeds(d_model: int) -> np.ndarray:
    """(D/2,) radians a position, 10000^(−2i/D)."""
    return 10000.0 ** (-np.arange(0, d_model, 2) / d_model)


def cosine_of_waves(distances: np.ndarray, d_model: int) -> np.ndarray:
    """(n,) the cosine of two positions' waves, by their distance alone.

    sin a sin b + cos a cos b = cos(a − b), so that the dot product of positions m and n is Σᵢ cos((m − n) ωᵢ), and D/2
    of a position with itself.
    """
    return np.cos(np.outer(distances, speeds(d_model))).mean(-1)


def cosines(trace: Trace) -> np.ndarray:
    """(T, T) of the vectors added at any two positions of the run; 0 where one has no length."""
    vectors = trace["position_embed"].astype(np.float64)
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    units = np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)
    return units @ units.T


@dataclass(frozen=True)
class ByDistance:
    """The `cosines` of all pairs of positions that are as far apart, each (T,), by distance from 0."""

    least: np.ndarray
    mean: np.ndarray
    most: np.ndarray


@kept_by_trace
def by_distance(trace: Trace) -> ByDistance:
    found = cosines(trace)
    diagonals = [found.diagonal(distance) for distance in range(len(trace))]
    return ByDistance(*(np.array([part(diagonal) for diagonal in diagonals]) for part in (np.min, np.mean, np.max)))


PARTS = ("token", "position", "sum")


@kept_by_trace
def lengths(trace: Trace) -> np.ndarray:
    """(3, T) ‖x‖₂ of `PARTS`: each token's own vector, the position's, and what the first layer reads."""
    tokens = trace.weights["token_embedding.weight"][list(trace.token_ids)] * trace.config.embedding_scale
    return np.stack([np.linalg.norm(x, axis=-1) for x in (tokens, trace["position_embed"], trace["embed"])])
