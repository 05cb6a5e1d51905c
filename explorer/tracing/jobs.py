"""Long computations, by their questions: what an answer may not take the time for."""

import hashlib
from collections.abc import Callable, Generator, Hashable, Mapping
from dataclasses import dataclass
from typing import Any

from explorer.tracing.lru import LRU
from explorer.tracing.work import is_answering, is_now_incomplete

MOST_BYTES = 64 << 20  # of all results that are kept
A_SECOND = 2e10  # products that a machine is taken to do in one, before any job was timed

Pieces = Generator[int, None, Any]


@dataclass(frozen=True, eq=False)
class Job:
    """A computation that takes longer than an answer may.

    Attributes:
        question: all that the result depends on, as something hashable: the result is kept under it.
        pieces: begins it; gives how many units are done after each piece, of at most a tenth of a second, and returns
            the result: an array, or a mapping of arrays. No hook may stay on a model between two pieces.
        units: how many there are in all.
        products: that it takes, multiplications with additions: about the weights times the tokens that are read; 0 of
            one whose time is not that of products.
    """

    question: Hashable
    pieces: Callable[[], Pieces]
    units: int
    products: float

    @property
    def name(self) -> str:
        """The question's, for the browser."""
        return hashlib.sha256(repr(self.question).encode()).hexdigest()[:16]

    @property
    def seconds(self) -> float:
        """How long it takes alone, as far as earlier ones tell."""
        return self.products / _speed

    def took(self, seconds: float):
        """It was timed: the next are told by it."""
        global _speed
        if self.products:
            _speed = self.products / max(seconds, 1e-3)


class NotYet(Exception):
    """The result is not there, and an answer does not wait for it.

    Attributes:
        job: that would find it.
    """

    def __init__(self, job: Job):
        super().__init__(job.name)
        self.job = job


IN_A_CLICK = 5e10  # products: some tenths of a second


def worked_out(job: Job, waited_for: float = 0) -> Any:
    """The job's result, kept or else computed now.

    Args:
        waited_for: of at most so many products an answer of the page waits for, too; inf for any.

    Raises:
        NotYet: it is asked for in an answer of the page that does not wait for it, and not there.
    """
    kept = RESULTS.peek(job.question)
    if kept is None and is_answering() and not 0 < job.products <= waited_for:
        is_now_incomplete()
        raise NotYet(job)
    return RESULTS.get(job.question, lambda: finished(job.pieces()))


def finished(pieces: Pieces, tell: Callable[[int], None] = lambda done: None) -> Any:
    """What pieces of work return; how many units are done is told after each."""
    while True:
        try:
            tell(next(pieces))
        except StopIteration as end:
            return end.value


def num_bytes(result: Any) -> int:
    """Of an array, or of all arrays in a mapping."""
    return sum(map(num_bytes, result.values())) if isinstance(result, Mapping) else result.nbytes


RESULTS = LRU(MOST_BYTES, num_bytes)
_speed = A_SECOND
