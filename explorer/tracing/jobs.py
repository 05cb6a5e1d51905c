"""Budget of a request's computation, and jobs for what takes longer: a queue runs their steps in turn."""

import hashlib
import math
import sys
import threading
import time
from collections.abc import Callable, Generator, Hashable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import Context, ContextVar, copy_context
from dataclasses import dataclass, field
from typing import Any, Literal

from explorer.errors import UserError
from explorer.tracing.lru_cache import LRUCache
from explorer.translations import _
from model.config import ModelConfig, num_parameters


class BudgetExceededError(UserError):
    """A response would exceed its budget; results computed so far stay cached for the next request."""


class RequestCancelledError(Exception):
    """No client waits for the response any more."""


@dataclass
class RequestBudget:
    """Token and time budget of one request.

    Attributes:
        max_tokens: that models read for it.
        max_seconds: of computing in its thread before its last piece; on a busy machine the response may take
            longer.
        is_cancelled: whether the client is gone, or has made a newer request.
        is_incomplete: whether a part of the response waits for a job, so that a repeated request gets another
            response.
        values: those that `compute_once` has for this request, by key.
    """

    max_tokens: int
    max_seconds: float
    is_cancelled: bool = False
    is_incomplete: bool = False
    tokens: int = 0
    began: float = 0.0
    values: dict[Hashable, Any] = field(default_factory=dict, repr=False)

    @contextmanager
    def activate(self) -> Iterator[None]:
        """Count this thread's computations towards this budget while the block runs."""
        before, self.began = _current.set(self), time.thread_time()
        try:
            yield
        finally:
            _current.reset(before)

    def check(self, tokens: int):
        self.tokens += tokens
        if self.is_cancelled:
            raise RequestCancelledError
        if self.tokens > self.max_tokens:
            message = _(
                "This request exceeds the limit of {most:,} tokens per request. Use a shorter prompt, or close "
                "branches of its tree.",
                most=self.max_tokens,
            )
            raise BudgetExceededError(message)
        if time.thread_time() - self.began > self.max_seconds:
            message = _(
                "This request exceeds the limit of {most:g} seconds of computing per request. Use a shorter prompt, "
                "or close branches of its tree.",
                most=self.max_seconds,
            )
            raise BudgetExceededError(message)


def unlimited_budget() -> RequestBudget:
    """Return an unlimited budget, for buttons and programs."""
    return RequestBudget(max_tokens=sys.maxsize, max_seconds=math.inf)


MAX_CHUNK_TOKENS, MAX_CHUNK_MACS = 512, 8e9  # of one piece of work, which cannot be interrupted


def chunk_tokens(config: ModelConfig, passes_per_token: float = 1) -> int:
    """Return the largest number of tokens that a model may read between two checks for cancellation.

    That takes a twentieth of a second for the bundled models on one core, a fifth for large ones.

    Args:
        passes_per_token: cost of a token here, in passes.
    """
    return max(1, int(min(MAX_CHUNK_TOKENS, MAX_CHUNK_MACS / num_parameters(config)) / passes_per_token))


_current: ContextVar[RequestBudget | None] = ContextVar("work", default=None)


def is_time_limited() -> bool:
    """Return True if this computation is part of a response with limited time."""
    budget = _current.get()
    return budget is not None and budget.max_seconds < math.inf


def mark_incomplete():
    """Mark the current response as incomplete: it lacks the result of a job."""
    if budget := _current.get():
        budget.is_incomplete = True


def is_incomplete() -> bool:
    """Return True if the current response lacks the result of a job."""
    budget = _current.get()
    return budget is not None and budget.is_incomplete


def compute_once(key: Hashable, compute: Callable[[], Any]) -> Any:
    """Return `compute()`, called once in the current request for a key, and each time where there is none.

    What files are like is so one thing in the whole of a response.
    """
    if (budget := _current.get()) is None:
        return compute()
    if key not in budget.values:
        budget.values[key] = compute()
    return budget.values[key]


def check_budget(tokens: int = 0):
    """Check the budget and the cancellation of the current request, before each longer piece of work.

    Args:
        tokens: that a model is to read next.

    Raises:
        BudgetExceededError: the response may not take that much.
        RequestCancelledError: no client waits for the response any more.
    """
    if budget := _current.get():
        budget.check(tokens)


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


MAX_CONCURRENT_JOBS = 4  # whose steps run in turn; the others wait, so that memory is bounded
MAX_JOBS, MAX_JOBS_PER_CLIENT = 64, 4  # of all clients, and of one
JOB_TIMEOUT_S = 6.0  # a client without a request for this long counts as gone


@dataclass(frozen=True)
class JobProgress:
    """Progress of a job.

    Attributes:
        state: "waiting" before its first step, then "working"; "done" once the result is cached; "failed" with
            `error`; "gone" if the client waits for no such job.
        done, total: units.
        seconds: estimated time left.
    """

    state: Literal["waiting", "working", "done", "failed", "gone"]
    done: int = 0
    total: int = 0
    seconds: float = 0.0
    error: Exception | None = None


@dataclass(eq=False)
class _Task:
    """A job in the queue.

    Attributes:
        waiting: client id -> time of its last request.
        turn: number of the turn in which its last step ran; only grows.
        seconds_spent: computing time so far.
        context: of the first request, for the language of its errors.
    """

    job: Job
    waiting: dict[str, float] = field(default_factory=dict)
    steps: JobSteps | None = None
    budget: RequestBudget = field(default_factory=lambda: RequestBudget(math.inf, math.inf))
    context: Context = field(default_factory=copy_context)
    turn: int = -1
    done: int = 0
    seconds_spent: float = 0.0
    state: Literal["waiting", "working", "done", "failed"] = "waiting"
    error: Exception | None = None

    @property
    def is_over(self) -> bool:
        return self.state in ("done", "failed")

    def step(self):
        """Run one step."""
        began = time.monotonic()
        try:
            with self.budget.activate():
                self.steps = self.steps or self.job.steps()
                self.done, state = next(self.steps), "working"
        except StopIteration as end:
            result = end.value
            RESULTS.get(self.job.key, lambda: result)
            self.job.record_duration(self.seconds_spent + time.monotonic() - began)
            self.done, state = self.job.units, "done"
        except RequestCancelledError:
            state = "failed"
        except Exception as error:  # reported to waiting clients
            self.error, state = error, "failed"
        self.seconds_spent += time.monotonic() - began
        self.state = state


class JobScheduler:
    """Job queue shared by all clients.

    Jobs that several clients wait for run once; a job ends when the last of them leaves.
    """

    def __init__(self, max_concurrent: int = MAX_CONCURRENT_JOBS, timeout_s: float = JOB_TIMEOUT_S):
        self.max_concurrent, self.timeout_s = max_concurrent, timeout_s
        self._tasks: dict[str, _Task] = {}  # by name, in the order of their first request
        self._changed = threading.Condition()
        self._num_turns, self._thread = 0, None

    def begin(self, client_id: str, job: Job) -> JobProgress:
        """Register a client as waiting for a job, and start the job if necessary.

        Raises:
            UserError: there are too many jobs already.
        """
        if RESULTS.peek(job.key) is not None:
            return JobProgress("done", job.units, job.units)
        with self._changed:
            self._drop_abandoned()
            task = self._tasks.get(job.name)
            if task is None or task.is_over:
                self._check_capacity(client_id)
                task = self._tasks[job.name] = _Task(job)
            task.waiting[client_id] = time.monotonic()
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="jobs", daemon=True)
                self._thread.start()
            self._changed.notify()
        return self.progress(client_id, job.name)

    def progress(self, client_id: str, name: str) -> JobProgress:
        """Return the progress of a client's job, and record that the client still waits."""
        with self._changed:
            task = self._tasks.get(name)
            if task is None or client_id not in task.waiting:
                return JobProgress("gone")
            task.waiting[client_id] = time.monotonic()
            num_active = len([other for other in self._active_tasks() if other is not task]) + 1
            seconds = task.seconds_spent / task.done * (task.job.units - task.done) if task.done else task.job.seconds
            progress = JobProgress(task.state, task.done, task.job.units, seconds * num_active, task.error)
        if task.is_over:
            self.leave(client_id, name)
        return progress

    def leave(self, client_id: str, name: str):
        """Stop waiting for a job; a job without waiting clients is cancelled."""
        with self._changed:
            if task := self._tasks.get(name):
                task.waiting.pop(client_id, None)
            self._drop_abandoned()

    def _check_capacity(self, client_id: str):
        message = _("Too much is being worked out here already: wait until some of it is done, or cancel it.")
        client_jobs = [task for task in self._tasks.values() if client_id in task.waiting]
        if len(self._tasks) >= MAX_JOBS or len(client_jobs) >= MAX_JOBS_PER_CLIENT:
            raise UserError(message)

    def _drop_abandoned(self):
        """Remove clients whose last request is too old, and jobs that no client waits for."""
        cutoff = time.monotonic() - self.timeout_s
        for name, task in list(self._tasks.items()):
            task.waiting = {
                client_id: last_asked for client_id, last_asked in task.waiting.items() if last_asked > cutoff
            }
            if not task.waiting:
                task.budget.is_cancelled = True
                del self._tasks[name]

    def _active_tasks(self) -> list[_Task]:
        """Return the tasks whose steps run in turn: every client's first job comes before any client's second."""
        ranked, counts = [], {}
        for task in self._tasks.values():
            if task.is_over:
                continue
            for client_id in task.waiting:
                counts[client_id] = counts.get(client_id, -1) + 1
            ranked.append((min(counts[client_id] for client_id in task.waiting), task))
        return [task for _rank, task in sorted(ranked, key=lambda entry: entry[0])][: self.max_concurrent]

    def _work(self):
        for task in self._round_robin():
            task.context.run(task.step)

    def _round_robin(self) -> Iterator[_Task]:
        """Yield the active task whose last turn is longest ago, again and again."""
        while True:
            with self._changed:
                self._drop_abandoned()
                while not (active := self._active_tasks()):
                    self._changed.wait()
                task = min(active, key=lambda candidate: candidate.turn)
                self._num_turns += 1
                task.turn = self._num_turns
            yield task
