"""Queue of jobs: one thread runs their steps in turn while a client waits for them."""

import math
import threading
import time
from collections.abc import Iterator
from contextvars import Context, copy_context
from dataclasses import dataclass, field
from typing import Literal

from explorer.state.errors import UserError
from explorer.tracing.jobs import RESULTS, Job, JobSteps
from explorer.tracing.request_budget import RequestBudget, RequestCancelledError
from explorer.translations import _

MAX_CONCURRENT_JOBS = 4  # whose steps run in turn; the others wait, so that memory is bounded
MAX_JOBS, MAX_JOBS_PER_CLIENT = 64, 4  # of all clients, and of one
JOB_TIMEOUT_S = 6.0  # a client without a request for this long counts as gone


@dataclass(frozen=True)
class Progress:
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


class JobQueue:
    """Job queue shared by all clients.

    Jobs that several clients wait for run once; a job ends when the last of them leaves.
    """

    def __init__(self, max_concurrent: int = MAX_CONCURRENT_JOBS, timeout_s: float = JOB_TIMEOUT_S):
        self.max_concurrent, self.timeout_s = max_concurrent, timeout_s
        self._tasks: dict[str, _Task] = {}  # by name, in the order of their first request
        self._changed = threading.Condition()
        self._num_turns, self._thread = 0, None

    def begin(self, client_id: str, job: Job) -> Progress:
        """Register a client as waiting for a job, and start the job if necessary.

        Raises:
            UserError: there are too many jobs already.
        """
        if RESULTS.peek(job.key) is not None:
            return Progress("done", job.units, job.units)
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

    def progress(self, client_id: str, name: str) -> Progress:
        """Return the progress of a client's job, and record that the client still waits."""
        with self._changed:
            task = self._tasks.get(name)
            if task is None or client_id not in task.waiting:
                return Progress("gone")
            task.waiting[client_id] = time.monotonic()
            num_active = len([other for other in self._active_tasks() if other is not task]) + 1
            seconds = task.seconds_spent / task.done * (task.job.units - task.done) if task.done else task.job.seconds
            progress = Progress(task.state, task.done, task.job.units, seconds * num_active, task.error)
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
