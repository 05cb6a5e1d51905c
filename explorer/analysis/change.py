"""What edits changed: a run against its baseline, the same tokens without them.

All functions take the trace of a run with edits, whose `baseline` is there.
"""

from dataclasses import dataclass

import numpy as np

from explorer.analysis.next_token import next_token, surprisal
from explorer.analysis.residual import stream
from explorer.analysis.rounding import resolution as resolution_of
from explorer.tracing.trace import Trace


def resolution(trace: Trace) -> float:
    """The least difference between the runs that is more than rounding, of weights, shares and other numbers of size 1.

    Where the runs turn q and k by different angles, it is that of the largest: the same distance between two of them is
    then rounded differently.
    """
    angles = [run["rope.angles"] for run in (trace, trace.baseline) if "rope.angles" in run]
    turned = bool(angles) and not np.array_equal(*angles)
    return resolution_of(trace.dtype, max(float(np.abs(part).max()) for part in angles) if turned else 0.0)


def pattern_change(trace: Trace, layer: int, head: int) -> np.ndarray:
    """(T, T) in [-1, 1], row = query, column = key: changed weight − unchanged; each row sums to 0."""
    name = f"blocks.{layer}.attn.pattern"
    return trace[name][head] - trace.baseline[name][head]


def score_change(trace: Trace, layer: int, head: int) -> float:
    """The largest |changed score − unchanged| of a head, over the keys that the mask lets a query see."""
    name = f"blocks.{layer}.attn.scores"
    return float(np.abs(np.tril(trace[name][head] - trace.baseline[name][head])).max())


def largest_score(trace: Trace, layer: int, head: int) -> float:
    """The largest |score| of a head in either run, over the same keys: what its changes are to be compared with."""
    name = f"blocks.{layer}.attn.scores"
    return float(max(np.abs(np.tril(run[name][head])).max() for run in (trace, trace.baseline)))


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


def next_token_change(trace: Trace, position: int) -> NextTokenChange:
    before, after = (next_token(run, position).plain for run in (trace.baseline, trace))
    return NextTokenChange(before, after, float(np.abs(after - before).sum() / 2))


def surprisal_change(trace: Trace) -> np.ndarray:
    """(T,) bits, each token's surprisal − unchanged: above 0 the text is harder to predict; NaN for the first."""
    return surprisal(trace) - surprisal(trace.baseline)


def stream_change(trace: Trace) -> np.ndarray:
    """(S, T), ‖x' − x‖ / ‖x‖ of the residual stream at its `stages`: how far it moved, in multiples of its length."""
    before = stream(trace.baseline)  # (S, T, D)
    moved, lengths = (np.linalg.norm(vectors, axis=-1) for vectors in (stream(trace) - before, before))
    return np.divide(moved, lengths, out=np.zeros_like(moved), where=lengths > 0)


def attention_moved(trace: Trace) -> np.ndarray:
    """(L, H) in [0, 1], the share of each head's attention that went to other keys: ½ Σ |change|, mean over queries."""
    name = "blocks.*.attn.pattern"
    return np.abs(trace.stack(name) - trace.baseline.stack(name)).sum(-1).mean(-1) / 2
