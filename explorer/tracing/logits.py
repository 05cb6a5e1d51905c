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


class Logits:
    """The logits (T, V) after every token of a run, read some positions at a time.

    Args:
        token_ids: the T tokens.
        vocab_size: V.
        rows: (start, stop) -> (stop - start, V) in float32, those after the positions from start on.
        row: position -> (V,), likewise.
    """

    def __init__(
        self,
        token_ids: Sequence[int],
        vocab_size: int,
        rows: Callable[[int, int], np.ndarray],
        row: Callable[[int], np.ndarray],
    ):
        self.shape = len(token_ids), vocab_size
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

    def chunks(self) -> Iterator[tuple[slice, np.ndarray]]:
        """Positions and their logits (n, V), from the first on."""
        length, vocab_size = self.shape
        step = max(1, CHUNK_BYTES // (4 * vocab_size))
        for start in range(0, length, step):
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
        length, vocab_size = self.shape
        following = np.append(self._token_ids[1:], 0)  # what is said of the last is left out
        count = min(LIKELIEST, vocab_size)
        likeliest = np.empty((length, count), int)
        of_likeliest, total, entropy, next_logit, next_rank = (
            np.empty((length, *more)) for more in ((count,), (), (), (), ())
        )
        for places, logits in self.chunks():
            largest = logits.max(-1, keepdims=True)
            shifted = logits - largest
            exps = np.exp(shifted)
            sums = exps.sum(-1, dtype=np.float64)
            total[places] = np.log(sums) + largest[:, 0]
            bits = (np.log(sums) - np.einsum("tv,tv->t", exps, shifted) / sums) / np.log(2)
            entropy[places] = bits.clip(0)
            actual = np.take_along_axis(logits, following[places, None], -1)
            next_logit[places], next_rank[places] = actual[:, 0], (logits > actual).sum(-1) + 1
            for place in range(count):  # some times the largest is faster than to sort
                found = shifted.argmax(-1)[:, None]
                likeliest[places, place] = found[:, 0]
                of_likeliest[places, place] = np.take_along_axis(logits, found, -1)[:, 0]
                np.put_along_axis(shifted, found, -np.inf, axis=-1)
        return Summary(total, entropy, likeliest, of_likeliest, next_logit[:-1], next_rank[:-1])


def of_array(token_ids: Sequence[int], logits: np.ndarray) -> Logits:
    """Of logits (T, V) that are all there."""
    return Logits(token_ids, logits.shape[1], lambda start, stop: logits[start:stop], logits.__getitem__)
