"""Effects of interventions: a run compared with the same tokens without them (`Comparison.with_unchanged`)."""

from dataclasses import dataclass

import numpy as np

from explorer.analysis.next_token import next_token_distribution, surprisal
from explorer.analysis.residual import residual_stream
from explorer.analysis.tolerance import rounding_threshold as rounding_resolution
from explorer.architecture.attention import ANGLES, LOCAL_ANGLES
from explorer.tracing.comparison import Comparison


def comparison_rounding_threshold(comparison: Comparison) -> float:
    """Return the smallest difference between the runs that rounding does not explain, for numbers of size 1.

    If the runs rotate q and k by different angles, it is that of the largest angle: equal distances between two
    angles are then rounded differently.
    """
    largest = 0.0
    for name in (ANGLES, LOCAL_ANGLES):
        angles = [run[name] for run in comparison.runs if name in run]
        if len(angles) == 2 and not np.array_equal(*angles):
            largest = max(largest, *(float(np.abs(values).max()) for values in angles))
    return rounding_resolution(comparison.trace.dtype, largest)


def pattern_change(comparison: Comparison, layer: int, head: int) -> np.ndarray:
    """Return changed − unchanged attention weights, (T, T) in [-1, 1], row = query, column = key.

    Each row sums to 0.
    """
    name = f"blocks.{layer}.attn.pattern"
    return comparison.trace[name][head] - comparison.other[name][head]


def largest_score_change(comparison: Comparison, layer: int, head: int) -> float:
    """Return the largest |changed score − unchanged score| of a head, over the causally visible keys."""
    name = f"blocks.{layer}.attn.scores"
    return float(np.abs(np.tril(comparison.trace[name][head] - comparison.other[name][head])).max())


def largest_score(comparison: Comparison, layer: int, head: int) -> float:
    """Return the largest |score| of a head in either run, over the same keys, as the scale of its changes."""
    name = f"blocks.{layer}.attn.scores"
    return float(max(np.abs(np.tril(run[name][head])).max() for run in comparison.runs))


@dataclass(frozen=True)
class NextTokenChange:
    """Next-token distributions after one position, without and with interventions.

    Attributes:
        before, after: (V,) probabilities without and with the interventions.
        total_variation: ½ Σ |after − before| in [0, 1], the probability that moved to other tokens.
    """

    before: np.ndarray
    after: np.ndarray
    total_variation: float

    def top(self, n: int) -> np.ndarray:
        """Return the ids of the n tokens most probable in either run, most probable first; ties by lower id."""
        return np.argsort(-np.maximum(self.before, self.after), kind="stable")[:n]


def next_token_change(comparison: Comparison, position: int) -> NextTokenChange:
    """Return the next-token distributions after a position, without and with the interventions."""
    before, after = (next_token_distribution(run, position).plain for run in reversed(comparison.runs))
    return NextTokenChange(before, after, float(np.abs(after - before).sum() / 2))


def surprisal_change(comparison: Comparison) -> np.ndarray:
    """Return changed − unchanged surprisal of each token in bits, (T,); NaN for the first.

    Above 0 the token is harder to predict.
    """
    return surprisal(comparison.trace) - surprisal(comparison.other)


def relative_stream_change(comparison: Comparison) -> np.ndarray:
    """Return ‖x' − x‖ / ‖x‖ of the residual stream at its `stages`, (S, T)."""
    before = residual_stream(comparison.other)  # (S, T, D)
    distances, norms = (
        np.linalg.norm(vectors, axis=-1) for vectors in (residual_stream(comparison.trace) - before, before)
    )
    return np.divide(distances, norms, out=np.zeros_like(distances), where=norms > 0)


def attention_shift(comparison: Comparison) -> np.ndarray:
    """Return the fraction of each head's attention that moved to other keys, (L, H) in [0, 1].

    ½ Σ |change|, averaged over queries.
    """
    name = "blocks.*.attn.pattern"
    pattern_pairs = zip(comparison.trace.layers(name), comparison.other.layers(name), strict=True)
    return np.stack([np.abs(changed - unchanged).sum(-1).mean(-1) / 2 for changed, unchanged in pattern_pairs])
