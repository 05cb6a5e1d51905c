"""Jobs: computations that take longer than a response may."""

import hashlib
from collections.abc import Callable, Generator, Hashable, Mapping
from dataclasses import dataclass
from typing import Any

from explorer.tracing.lru import LRUCache
from explorer.tracing.request_budget import is_time_limited, mark_incomplete

MAX_RESULT_BYTES = 64 << 20  # of all cached results
MACS_PER_SECOND = 2e10  # products that a machine is taken to do in one, before any job was timed

JobSteps = Generator[int, None, Any]


@dataclass(frozen=True, eq=False)
class Job:
    """A computation that takes longer than a response may.

    Attributes:
        key: everything that the result depends on, hashable: the result is cached under it.
        steps: starts the job; yields how many units are done after each step, which takes at most a tenth of a
            second, and returns the result: an array, or a mapping of arrays. No hook may remain on a model between
            two steps.
        units: their number in total.
        macs: multiply-accumulates: about the weights times the tokens read; 0 if they do not determine the
            duration.
    """

    key: Hashable
    steps: Callable[[], JobSteps]
    units: int
    macs: float

    @property
    def name(self) -> str:
        """Hash of the key, as the job's name in the browser."""
        return hashlib.sha256(repr(self.key).encode()).hexdigest()[:16]

    @property
    def seconds(self) -> float:
        """Estimated duration if it runs alone, from the speed of earlier jobs."""
        return self.macs / _speed

    def record_duration(self, seconds: float):
        """Update the speed estimate by the job's duration."""
        global _speed
        if self.macs:
            _speed = self.macs / max(seconds, 1e-3)


class ResultNotReadyError(Exception):
    """The result is not cached, and the response does not wait for it.

    Attributes:
        job: computes the result.
    """

    def __init__(self, job: Job):
        super().__init__(job.name)
        self.job = job


MAX_CLICK_MACS = 5e10  # products: some tenths of a second


def get_or_run(job: Job, max_wait_macs: float = 0) -> Any:
    """Return the job's cached result, or run the job.

    Args:
        max_wait_macs: inside a page request a job is run only if it has at most this many multiply-accumulates;
            inf: any.

    Raises:
        ResultNotReadyError: the result is not cached, and a page request does not wait for it.
    """
    cached = RESULTS.peek(job.key)
    if cached is None and is_time_limited() and not 0 < job.macs <= max_wait_macs:
        mark_incomplete()
        raise ResultNotReadyError(job)
    return RESULTS.get(job.key, lambda: run_to_completion(job.steps()))


def run_to_completion(steps: JobSteps, on_progress: Callable[[int], None] = lambda done: None) -> Any:
    """Exhaust a job's steps and return its result; call `on_progress` with the units done after each step."""
    while True:
        try:
            on_progress(next(steps))
        except StopIteration as end:
            return end.value


def result_num_bytes(result: Any) -> int:
    """Return the memory of an array, or of all arrays in a mapping."""
    return sum(map(result_num_bytes, result.values())) if isinstance(result, Mapping) else result.nbytes


RESULTS = LRUCache(MAX_RESULT_BYTES, result_num_bytes)
_speed = MACS_PER_SECOND
