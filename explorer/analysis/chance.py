"""What a head's score comes to by chance, on the very same tokens: a yardstick, nothing of it is captured."""

from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np

from explorer.analysis.heads import targets_of, without_first
from explorer.tracing.trace import Trace

TRIES, AT_ONCE, SEED = 100, 20, 0
SHARE = 0.95  # of the tries that stay within what counts as chance

ROUNDING = 1e-6  # of scores in float32


@dataclass(frozen=True)
class Chance:
    """What heads score that look nowhere in particular.

    Attributes:
        even: the score of a head whose every query spreads its attention evenly over the keys it sees.
        within: (L, H) what each head stays within in 19 of 20 tries, in which all weights of each of its rows turn
            a random number of places around the keys that the row sees: it is as sharp, but looks anywhere. The mean
            over all such turns is `even`. None of "spread", which does not ask where a head looks.
        queries: how many the score is a mean over.
    """

    even: float
    within: np.ndarray | None
    queries: int

    def is_exceeded(self, scores: np.ndarray) -> np.ndarray:
        """(L, H) booleans: whose score is more than chance would give."""
        return np.ones(scores.shape, bool) if self.within is None else scores > self.within + ROUNDING


def chance(trace: Trace, name: str, hide_first: bool = False) -> Chance | None:
    """Of one of `HEAD_SCORES`, worked out once a run; None where no query of it counts."""
    known = KNOWN.setdefault(trace, {})
    if (name, hide_first) not in known:
        known[name, hide_first] = work_out(trace, name, hide_first)
    return known[name, hide_first]


KNOWN: WeakKeyDictionary[Trace, dict[tuple[str, bool], Chance | None]] = WeakKeyDictionary()


def work_out(trace: Trace, name: str, hide_first: bool) -> Chance | None:
    if name == "spread":
        return Chance(even_spread(len(trace), hide_first), None, len(trace) - 1) if len(trace) > 1 else None
    targets = targets_of(trace, name)
    rows = np.flatnonzero(targets[1:].any(-1)) + 1  # the queries that count, as in `head_scores`
    if not len(rows):
        return None
    first = int(hide_first)
    targets = targets[rows]  # (Q, T)
    targets[:, :first] = False
    seen = rows[:, None] + 1 - first  # (Q, 1) how many keys each query sees
    patterns = trace.stack("blocks.*.attn.pattern")
    patterns = (without_first(patterns) if hide_first else patterns)[..., rows, :]  # (L, H, Q, T)
    flat = patterns.reshape(-1, targets.size).astype(np.float32)
    place = np.arange(len(trace)) - first  # (T,)
    random, tries = np.random.default_rng(SEED), []
    for _ in range(TRIES // AT_ONCE):
        turns = random.integers(seen, size=(AT_ONCE, len(rows), 1))
        turned = np.take_along_axis(targets[None], (place - turns) % seen + first, -1)  # (AT_ONCE, Q, T)
        turned &= (place >= 0) & (place < seen)
        tries.append(flat @ turned.reshape(AT_ONCE, -1).T.astype(np.float32) / len(rows))
    within = np.quantile(np.concatenate(tries, axis=-1), SHARE, axis=-1, method="inverted_cdf")
    return Chance(float((targets.sum(-1) / seen[:, 0]).mean()), within.reshape(patterns.shape[:2]), len(rows))


def even_spread(tokens: int, hide_first: bool) -> float:
    """The "spread" of a head that spreads its attention evenly: 1, or a little less where the first key is left out."""
    keys = np.arange(2, tokens + 1)  # that each query but the first sees
    return float((np.log2(keys - hide_first) / np.log2(keys)).mean())
