"""What a head's score comes to by chance, on the very same tokens: a yardstick, nothing of it is captured."""

from collections.abc import Iterator
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np

from explorer.analysis.heads import targets_of, without_first
from explorer.architecture.attention import first_visible
from explorer.tracing.trace import Trace

TRIES, AT_ONCE, SEED = 100, 20, 0
MOST_CELLS = 4 << 20  # of all tries together that are looked at in turn
SHARE = 0.95  # of the tries that stay within what counts as chance

ROUNDING = 1e-6  # of scores in float32


@dataclass(frozen=True)
class Chance:
    """What heads score that look nowhere in particular.

    Attributes:
        even: (L,) the score of a head of each layer whose every query spreads its attention evenly over the keys it
            sees.
        within: (L, H) what each head stays within in 19 of 20 tries, in which all weights of each of its rows turn
            a random number of places around the keys that the row sees: it is as sharp, but looks anywhere. The mean
            over all such turns is `even`. None of "spread", which does not ask where a head looks.
        queries: how many the score is a mean over.
    """

    even: np.ndarray
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
        if len(trace) < 2:
            return None
        layers = range(trace.config.num_layers)
        return Chance(np.array([even_spread(trace, i, hide_first) for i in layers]), None, len(trace) - 1)
    targets = targets_of(trace, name)
    rows = np.flatnonzero(targets[1:].any(-1)) + 1  # the queries that count, as in `head_scores`
    if not len(rows):
        return None
    targets = targets[rows]  # (Q, T)
    targets[:, : int(hide_first)] = False
    even, within, turns = [], [], None
    for layer, patterns in enumerate(trace.layers("blocks.*.attn.pattern")):
        patterns = without_first(patterns) if hide_first else patterns
        first = np.array([max(int(hide_first), first_visible(trace.config, layer, query)) for query in rows])[:, None]
        even.append(evenly(targets, rows, first))
        if turns is None or not np.array_equal(first, turns.first):  # layers that see the same have the same
            turns = Turns(targets, rows, first)
        within.append(turned_within(patterns, turns))
    return Chance(np.array(even), np.stack(within), len(rows))


def evenly(targets: np.ndarray, rows: np.ndarray, first: np.ndarray) -> float:
    """The score of a row that is even over the keys from `first` (Q, 1) to the query."""
    in_sight = targets & (np.arange(targets.shape[1]) >= first)
    return float((in_sight.sum(-1) / np.maximum(rows + 1 - first[:, 0], 1)).mean())


class Turns:
    """The targets (Q, T) of every try: each row turned around the keys it sees.

    Args:
        rows: (Q,) which queries they are of.
        first: (Q, 1) the first key that each sees.
    """

    def __init__(self, targets: np.ndarray, rows: np.ndarray, first: np.ndarray):
        self.rows, self.first, self._num_keys = rows, first, targets.shape[1]
        seen = np.maximum(rows[:, None] + 1 - first, 1)  # (Q, 1) how many keys each query sees
        place = np.arange(self._num_keys) - first  # (Q, T)
        random, packed = np.random.default_rng(SEED), []
        for _ in range(TRIES // AT_ONCE):
            turns = random.integers(seen, size=(AT_ONCE, len(rows), 1))
            turned = np.take_along_axis(targets[None], (place - turns) % seen + np.minimum(first, rows[:, None]), -1)
            turned &= (place >= 0) & (place < seen)  # (AT_ONCE, Q, T)
            packed.append(np.packbits(turned, axis=-1))  # an eighth of the memory
        self._packed = np.concatenate(packed)

    def __iter__(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Some queries (n,) at a time, and every try's targets of them, 0 or 1 in float32 (TRIES, n, T)."""
        count = max(1, MOST_CELLS // (TRIES * self._num_keys))
        for start in range(0, len(self.rows), count):
            part = slice(start, start + count)
            turned = np.unpackbits(self._packed[:, part], axis=-1, count=self._num_keys)
            yield self.rows[part], turned.astype(np.float32)


def turned_within(patterns: np.ndarray, turns: Turns) -> np.ndarray:
    """(H,) what most tries stay within, of one layer's patterns (H, T, T)."""
    tries = np.zeros((len(patterns), TRIES))
    for rows, turned in turns:
        tries += patterns[:, rows].reshape(len(patterns), -1) @ turned.reshape(TRIES, -1).T
    return np.quantile(tries / len(turns.rows), SHARE, axis=-1, method="inverted_cdf")


def even_spread(trace: Trace, layer: int, hide_first: bool) -> float:
    """The "spread" of a head that spreads its attention evenly: 1, or a little less where the first key is left out."""
    queries = np.arange(1, len(trace))
    first = np.array([first_visible(trace.config, layer, query) for query in queries])
    keys = queries + 1 - first
    counted = keys - (hide_first & (first == 0))  # of those that each sees
    return float((np.log2(np.maximum(counted, 1)) / np.log2(np.maximum(keys, 2))).mean())
