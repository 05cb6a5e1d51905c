"""Logits of a run, read without holding all of them in memory."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

CHUNK_BYTES = 16 << 20  # of logits read at a time
LIKELIEST = 3


@dataclass(frozen=True)
class LogitSummary:
    """Summary of T next-token distributions, in float64 and token ids.

    Attributes:
        log_sum_exp: (T,) ln Σ e^logits, so that ln p = logit - log_sum_exp.
        entropy: (T,) -Σ p log₂ p, bits.
        likeliest: (T, 3) ids, likeliest first; of equal ones the lower id.
        likeliest_logits: (T, 3), theirs.
        next_logit: (T - 1,) of the token that comes next.
        next_rank: (T - 1,) its rank, 1 + the number of likelier tokens.
    """

    log_sum_exp: np.ndarray
    entropy: np.ndarray
    likeliest: np.ndarray
    likeliest_logits: np.ndarray
    next_logit: np.ndarray
    next_rank: np.ndarray

    @property
    def nbytes(self) -> int:
        """Memory of all arrays in bytes."""
        return sum(values.nbytes for values in vars(self).values())

    def first(self, length: int) -> "LogitSummary":
        """Return the summary of the first `length` positions."""
        of_next = {name: getattr(self, name)[: max(0, length - 1)] for name in ("next_logit", "next_rank")}
        return LogitSummary(**{name: values[:length] for name, values in vars(self).items()} | of_next)


class Logits:
    """The logits (T, V) after every token of a run, read some positions at a time.

    Args:
        token_ids: the T tokens.
        vocab_size: V.
        rows: (start, stop) -> (stop - start, V) in float32, the logits after the positions from `start` on.
        row: position -> (V,), likewise.
        cached_summary: of the first positions, which `summary` does not read again, except for the last if a token
            follows it now.
    """

    def __init__(
        self,
        token_ids: Sequence[int],
        vocab_size: int,
        rows: Callable[[int, int], np.ndarray],
        row: Callable[[int], np.ndarray],
        cached_summary: LogitSummary | None = None,
    ):
        self.shape = len(token_ids), vocab_size
        self._cached_summary = cached_summary
        self.rows, self._row, self._token_ids = rows, row, np.array(token_ids)
        self._sorted: tuple[int | None, np.ndarray] = (
            None,
            np.empty(0, int),
        )  # token ids by logit at the last position of `top`

    def row(self, position: int) -> np.ndarray:
        """Return the logits after a position, (V,), read-only.

        Raises:
            IndexError: there is no such position.
        """
        length = self.shape[0]
        if not -length <= position < length:
            raise IndexError(f"no position {position} among {length}")
        return self._row(int(position) % length)

    def token_logits(self, token_ids: Sequence[int] | int, positions: Sequence[int] | int) -> np.ndarray:
        """Return the logits of tokens, each after the position in `positions` that it is broadcast with."""
        ids, position_array = np.broadcast_arrays(token_ids, positions)
        logits = [
            self.row(position)[token_id] for token_id, position in zip(ids.ravel(), position_array.ravel(), strict=True)
        ]
        return np.array(logits, np.float32).reshape(ids.shape)

    def top(self, count: int, position: int) -> np.ndarray:
        """Return the ids of the likeliest tokens after a position, likeliest first.

        The array is read-only. Of equal logits the lower id comes first.
        """
        sorted_position, order = self._sorted
        if sorted_position != position:
            sorted_position, order = self._sorted = position, np.argsort(-self.row(position), kind="stable")
        return order[:count]

    def rank(self, token_id: int, position: int) -> int:
        """Return a token's rank after a position: 1 for the likeliest; of equal ones the lower id comes first."""
        logits = self.row(position)
        return int((logits > logits[token_id]).sum() + (logits[:token_id] == logits[token_id]).sum()) + 1

    def chunks(self, first: int = 0) -> Iterator[tuple[slice, np.ndarray]]:
        """Yield ranges of positions from `first` on, with their logits (n, V)."""
        length, vocab_size = self.shape
        step = max(1, CHUNK_BYTES // (4 * vocab_size))
        for start in range(first, length, step):
            stop = min(start + step, length)
            yield slice(start, stop), self.rows(start, stop)

    def to_array(self) -> np.ndarray:
        """Return all logits as one read-only array, (T, V)."""
        array = np.empty(self.shape, np.float32)
        for positions, logits in self.chunks():
            array[positions] = logits
        array.flags.writeable = False
        return array

    @property
    def log_sum_exp(self) -> np.ndarray:
        """ln Σ e^logits at every position, (T,)."""
        return self.summary.log_sum_exp

    @property
    def entropy(self) -> np.ndarray:
        """Entropy −Σ p log₂ p at every position, (T,), in bits."""
        return self.summary.entropy

    @cached_property
    def summary(self) -> LogitSummary:
        """Summary of the logits at every position, computed in one pass over them."""
        if self._cached_summary and len(self._cached_summary.entropy) == self.shape[0]:
            return self._cached_summary
        next_ids = np.append(self._token_ids[1:], 0)  # the last position has no next token: its entry is dropped below
        num_cached = len(self._cached_summary.next_logit) if self._cached_summary else 0
        summaries = [_summarise(logits, next_ids[positions]) for positions, logits in self.chunks(num_cached)]
        if num_cached:
            summaries.insert(0, LogitSummary(*(values[:num_cached] for values in vars(self._cached_summary).values())))
        joined = (np.concatenate(values) for values in zip(*(vars(part).values() for part in summaries), strict=True))
        return LogitSummary(*joined).first(self.shape[0])


def _summarise(logits: np.ndarray, next_ids: np.ndarray) -> LogitSummary:
    """Summarise logits (n, V), given the next token at each position, (n,)."""
    largest = logits.max(-1, keepdims=True)
    shifted = logits - largest
    exps = np.exp(shifted)
    sums = exps.sum(-1, dtype=np.float64)
    bits = (np.log(sums) - np.einsum("tv,tv->t", exps, shifted) / sums) / np.log(2)
    actual = np.take_along_axis(logits, next_ids[:, None], -1)
    likeliest = np.empty((len(logits), min(LIKELIEST, logits.shape[1])), int)
    for rank in range(likeliest.shape[1]):  # some times the largest is faster than to sort
        top = shifted.argmax(-1)[:, None]
        likeliest[:, rank] = top[:, 0]
        np.put_along_axis(shifted, top, -np.inf, axis=-1)
    return LogitSummary(
        log_sum_exp=np.log(sums) + largest[:, 0],
        entropy=bits.clip(0),
        likeliest=likeliest,
        likeliest_logits=np.take_along_axis(logits, likeliest, -1).astype(float),
        next_logit=actual[:, 0].astype(float),
        next_rank=(logits > actual).sum(-1) + 1.0,
    )


def logits_from_array(token_ids: Sequence[int], logits: np.ndarray) -> Logits:
    """Return logits (T, V) that are in memory as `Logits`."""
    return Logits(token_ids, logits.shape[1], lambda start, stop: logits[start:stop], logits.__getitem__)
