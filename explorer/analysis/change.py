"""What edits changed: a run against the same tokens without them (`Comparison.with_unchanged`)."""

from dataclasses import dataclass

import numpy as np

from explorer.analysis.next_token import next_token, surprisal
from explorer.analysis.residual import stream
from explorer.analysis.rounding import resolution as resolution_of
from explorer.architecture.attention import ANGLES, LOCAL_ANGLES
from explorer.tracing.comparison import Comparison


def resolution(comparison: Comparison) -> float:
    """The least difference between the runs that is more than rounding, of weights, shares and other numbers of size 1.

    Where the runs turn q and k by different angles, it is that of the largest: the same distance between two of them is
    then rounded differently.
    """
    largest = 0.0
    for name in (ANGLES, LOCAL_ANGLES):
        angles = [run[name] for run in comparison.runs if name in run]
        if len(angles) == 2 and not np.array_equal(*angles):
            largest = max(largest, *(float(np.abs(part).max()) for part in angles))
    return resolution_of(comparison.trace.dtype, largest)


def pattern_change(comparison: Comparison, layer: int, head: int) -> np.ndarray:
    """(T, T) in [-1, 1], row = query, column = key: changed weight − unchanged; each row sums to 0."""
    name = f"blocks.{layer}.attn.pattern"
    return comparison.trace[name][head] - comparison.other[name][head]


def score_change(comparison: Comparison, layer: int, head: int) -> float:
    """The largest |changed score − unchanged| of a head, over the keys that the mask lets a query see."""
    name = f"blocks.{layer}.attn.scores"
    return float(np.abs(np.tril(comparison.trace[name][head] - comparison.other[name][head])).max())


def largest_score(comparison: Comparison, layer: int, head: int) -> float:
    """The largest |score| of a head in either run, over the same keys: what its changes are to be compared with."""
    name = f"blocks.{layer}.attn.scores"
    return float(max(np.abs(np.tril(run[name][head])).max() for run in comparison.runs))


@dataclass(frozen=True)
class NextTokenChange:
    """Two distributions of the token after one position.

    Attributes:
        before, after: (V,) probabilities without and with the edits.
        moved: ½ Σ |after − before| in [0, 1], the share of the probability that went to other tokens (total variation).
    """

    before: np.ndarray
    after: np.ndarray
    moved: float

    def top(self, n: int) -> np.ndarray:
        """Ids of the n tokens likeliest in either, likeliest first; of equal ones the lower id first."""
        return np.argsort(-np.maximum(self.before, self.after), kind="stable")[:n]


def next_token_change(comparison: Comparison, position: int) -> NextTokenChange:
    before, after = (next_token(run, position).plain for run in reversed(comparison.runs))
    return NextTokenChange(before, after, float(np.abs(after - before).sum() / 2))


def surprisal_change(comparison: Comparison) -> np.ndarray:
    """(T,) bits, each token's surprisal − unchanged: above 0 the text is harder to predict; NaN for the first."""
    return surprisal(comparison.trace) - surprisal(comparison.other)


def stream_change(comparison: Comparison) -> np.ndarray:
    """(S, T), ‖x' − x‖ / ‖x‖ of the residual stream at its `stages`: how far it moved, in multiples of its length."""
    before = stream(comparison.other)  # (S, T, D)
    moved, lengths = (np.linalg.norm(vectors, axis=-1) for vectors in (stream(comparison.trace) - before, before))
    return np.divide(moved, lengths, out=np.zeros_like(moved), where=lengths > 0)


def attention_moved(comparison: Comparison) -> np.ndarray:
    """(L, H) in [0, 1], the share of each head's attention that went to other keys: ½ Σ |change|, mean over queries."""
    name = "blocks.*.attn.pattern"
    both = zip(comparison.trace.layers(name), comparison.other.layers(name), strict=True)
    return np.stack([np.abs(mine - theirs).sum(-1).mean(-1) / 2 for mine, theirs in both])
