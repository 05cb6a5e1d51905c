"""What a run says of every next token, without all of it being there at once."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

CHUNK_BYTES = 16 << 20  # of logits that are looked through at a time
LIKELIEST = 3


@dataclass(frozen=True)
class Summary:
    """T distributions over the vocabulary in a few numbers each, in float64 and ids.

    Attributes:
        log_sum_exp: (T,) ln Σ e^logits, so that ln p = logit - log_sum_exp.
        entropy: (T,) -Σ p log₂ p, bits.
        likeliest: (T, 3) ids, likeliest first; of equal ones the lower id.
        likeliest_logits: (T, 3), theirs.
        next_logit: (T - 1,) of the token that does come next.
        next_rank: (T - 1,) its place, 1 + how many are likelier.
    """

    log_sum_exp: np.ndarray
    entropy: np.ndarray
    likeliest: np.ndarray
    likeliest_logits: np.ndarray
    next_logit: np.ndarray
    next_rank: np.ndarray

    @property
    def nbytes(self) -> int:
        """What all of it takes."""
        return sum(values.nbytes for values in vars(self).values())

    def first(self, length: int) -> "Summary":
        """Of the first positions alone."""
        of_next = {name: getattr(self, name)[: max(0, length - 1)] for name in ("next_logit", "next_rank")}
        return Summary(**{name: values[:length] for name, values in vars(self).items()} | of_next)


class Logits:
    """The logits (T, V) after every token of a run, read some positions at a time.

    Args:
        token_ids: the T tokens.
        vocab_size: V.
        rows: (start, stop) -> (stop - start, V) in float32, those after the positions from start on.
        row: position -> (V,), likewise.
        known: of so many positions from the first on, which are not read again for `summary`, but for the
            last where a token follows it now.
    """

    def __init__(
        self,
        token_ids: Sequence[int],
        vocab_size: int,
        rows: Callable[[int, int], np.ndarray],
        row: Callable[[int], np.ndarray],
        known: Summary | None = None,
    ):
        self.shape = len(token_ids), vocab_size
        self._known = known
        self.rows, self._row, self._token_ids = rows, row, np.array(token_ids)
        self._sorted: tuple[int | None, np.ndarray] = None, np.empty(0, int)  # of the position last asked for

    def at(self, position: int) -> np.ndarray:
        """(V,), not to be written to; IndexError where there is no such position."""
        length = self.shape[0]
        if not -length <= position < length:
            raise IndexError(f"no position {position} among {length}")
        return self._row(int(position) % length)

    def of(self, token_ids: Sequence[int] | int, positions: Sequence[int] | int) -> np.ndarray:
        """The logits of tokens, each after the position beside it in `positions`, or all after one."""
        ids, places = np.broadcast_arrays(token_ids, positions)
        found = [self.at(place)[token_id] for token_id, place in zip(ids.ravel(), places.ravel(), strict=True)]
        return np.array(found, np.float32).reshape(ids.shape)

    def top(self, count: int, position: int) -> np.ndarray:
        """Ids of the likeliest tokens after a position, likeliest first; of equal ones the lower id first; not to be
        written to."""
        place, order = self._sorted
        if place != position:
            place, order = self._sorted = position, np.argsort(-self.at(position), kind="stable")
        return order[:count]

    def rank(self, token_id: int, position: int) -> int:
        """Of a token after a position: 1 for the likeliest; of equal ones the lower id comes first."""
        logits = self.at(position)
        return int((logits > logits[token_id]).sum() + (logits[:token_id] == logits[token_id]).sum()) + 1

    def chunks(self, first: int = 0) -> Iterator[tuple[slice, np.ndarray]]:
        """Positions from `first` on, and their logits (n, V)."""
        length, vocab_size = self.shape
        step = max(1, CHUNK_BYTES // (4 * vocab_size))
        for start in range(first, length, step):
            stop = min(start + step, length)
            yield slice(start, stop), self.rows(start, stop)

    def whole(self) -> np.ndarray:
        """(T, V), put together; not to be written to."""
        found = np.empty(self.shape, np.float32)
        for places, logits in self.chunks():
            found[places] = logits
        found.flags.writeable = False
        return found

    @property
    def log_sum_exp(self) -> np.ndarray:
        """(T,) ln Σ e^logits."""
        return self.summary.log_sum_exp

    @property
    def entropy(self) -> np.ndarray:
        """(T,) bits, -Σ p log₂ p."""
        return self.summary.entropy

    @cached_property
    def summary(self) -> Summary:
        """Of all positions, read through once."""
        if self._known and len(self._known.entropy) == self.shape[0]:
            return self._known
        following = np.append(self._token_ids[1:], 0)  # what is said of the last is left out
        known = len(self._known.next_logit) if self._known else 0
        parts = [_summary_of(logits, following[places]) for places, logits in self.chunks(known)]
        if known:
            parts.insert(0, Summary(*(values[:known] for values in vars(self._known).values())))
        joined = (np.concatenate(values) for values in zip(*(vars(part).values() for part in parts), strict=True))
        return Summary(*joined).first(self.shape[0])


def _summary_of(logits: np.ndarray, following: np.ndarray) -> Summary:
    """Of some positions (n, V), and of as many tokens (n,) that come after them."""
    largest = logits.max(-1, keepdims=True)
    shifted = logits - largest
    exps = np.exp(shifted)
    sums = exps.sum(-1, dtype=np.float64)
    bits = (np.log(sums) - np.einsum("tv,tv->t", exps, shifted) / sums) / np.log(2)
    actual = np.take_along_axis(logits, following[:, None], -1)
    likeliest = np.empty((len(logits), min(LIKELIEST, logits.shape[1])), int)
    for place in range(likeliest.shape[1]):  # some times the largest is faster than to sort
        found = shifted.argmax(-1)[:, None]
        likeliest[:, place] = found[:, 0]
        np.put_along_axis(shifted, found, -np.inf, axis=-1)
    return Summary(
        log_sum_exp=np.log(sums) + largest[:, 0],
        entropy=bits.clip(0),
        likeliest=likeliest,
        likeliest_logits=np.take_along_axis(logits, likeliest, -1).astype(float),
        next_logit=actual[:, 0].astype(float),
        next_rank=(logits > actual).sum(-1) + 1.0,
    )


def of_array(token_ids: Sequence[int], logits: np.ndarray) -> Logits:
    """Of logits (T, V) that are all there."""
    return Logits(token_ids, logits.shape[1], lambda start, stop: logits[start:stop], logits.__getitem__)
