"""Jobs that people wait for: a piece of each in turn, on one thread, for as long as somebody waits."""

import math
import threading
import time
from collections.abc import Iterator
from contextvars import Context, copy_context
from dataclasses import dataclass, field
from typing import Literal

from explorer.language import _
from explorer.state.errors import UserError
from explorer.tracing.jobs import RESULTS, Job, Pieces
from explorer.tracing.work import GivenUp, Work

AT_ONCE = 4  # jobs of which a piece is done in turn; the others wait, so that memory is bounded
MOST_WAITED_FOR, MOST_OF_ONE = 64, 4  # jobs, of all visitors and of one
PATIENCE = 6.0  # seconds after which a visitor who asks no more is taken to be gone


@dataclass(frozen=True)
class Progress:
    """Where a job stands.

    Attributes:
        state: "waiting" until its first piece is done, then "working"; "done" once the result is kept; "failed" where
            `error` says why; "gone" where the visitor waits for no such job.
        done, of: units.
        seconds: that are left, as far as can be told.
    """

    state: Literal["waiting", "working", "done", "failed", "gone"]
    done: int = 0
    of: int = 0
    seconds: float = 0.0
    error: Exception | None = None


@dataclass(eq=False)
class _Task:
    """A job that is being done.

    Attributes:
        waiting: visitor -> when they last asked.
        turn: when its last piece was done, as a number that only grows.
        spent: seconds.
        context: of who asked first, in whose language it fails.
    """

    job: Job
    waiting: dict[str, float] = field(default_factory=dict)
    pieces: Pieces | None = None
    work: Work = field(default_factory=lambda: Work(math.inf, math.inf))
    context: Context = field(default_factory=copy_context)
    turn: int = -1
    done: int = 0
    spent: float = 0.0
    state: Literal["waiting", "working", "done", "failed"] = "waiting"
    error: Exception | None = None

    @property
    def is_over(self) -> bool:
        return self.state in ("done", "failed")

    def step(self):
        """One piece."""
        began = time.monotonic()
        try:
            with self.work.counted():
                self.pieces = self.pieces or self.job.pieces()
                self.done, state = next(self.pieces), "working"
        except StopIteration as end:
            result = end.value
            RESULTS.get(self.job.question, lambda: result)
            self.job.took(self.spent + time.monotonic() - began)
            self.done, state = self.job.units, "done"
        except GivenUp:
            state = "failed"
        except Exception as error:  # told to whoever waits
            self.error, state = error, "failed"
        self.spent += time.monotonic() - began
        self.state = state


class JobQueue:
    """Shared by all visitors. Of jobs that several wait for there is one; it ends when the last of them leaves."""

    def __init__(self, at_once: int = AT_ONCE, patience: float = PATIENCE):
        self.at_once, self.patience = at_once, patience
        self._tasks: dict[str, _Task] = {}  # by names, in the order in which they were asked for
        self._changed = threading.Condition()
        self._turns, self._thread = 0, None

    def begin(self, visitor: str, job: Job) -> Progress:
        """Has a visitor wait for a job.

        Raises:
            UserError: there are too many already.
        """
        if RESULTS.peek(job.question) is not None:
            return Progress("done", job.units, job.units)
        with self._changed:
            self._forget_gone()
            task = self._tasks.get(job.name)
            if task is None or task.is_over:
                self._check_room(visitor)
                task = self._tasks[job.name] = _Task(job)
            task.waiting[visitor] = time.monotonic()
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="jobs", daemon=True)
                self._thread.start()
            self._changed.notify()
        return self.progress(visitor, job.name)

    def progress(self, visitor: str, name: str) -> Progress:
        """Where a job stands that the visitor waits for: asking says that they still do."""
        with self._changed:
            task = self._tasks.get(name)
            if task is None or visitor not in task.waiting:
                return Progress("gone")
            task.waiting[visitor] = time.monotonic()
            share = len([other for other in self._active() if other is not task]) + 1
            alone = task.spent / task.done * (task.job.units - task.done) if task.done else task.job.seconds
            found = Progress(task.state, task.done, task.job.units, alone * share, task.error)
        if task.is_over:
            self.leave(visitor, name)
        return found

    def leave(self, visitor: str, name: str):
        """The visitor no longer waits; nor does anybody compute where nobody does."""
        with self._changed:
            if task := self._tasks.get(name):
                task.waiting.pop(visitor, None)
            self._forget_gone()

    def _check_room(self, visitor: str):
        told = _("Too much is being worked out here already: wait until some of it is done, or cancel it.")
        own = [task for task in self._tasks.values() if visitor in task.waiting]
        if len(self._tasks) >= MOST_WAITED_FOR or len(own) >= MOST_OF_ONE:
            raise UserError(told)

    def _forget_gone(self):
        """Visitors who asked too long ago, and tasks that nobody waits for."""
        late = time.monotonic() - self.patience
        for name, task in list(self._tasks.items()):
            task.waiting = {visitor: asked for visitor, asked in task.waiting.items() if asked > late}
            if not task.waiting:
                task.work.given_up = True
                del self._tasks[name]

    def _active(self) -> list[_Task]:
        """The tasks of which pieces are done in turn: everybody's first comes before anybody's second."""
        ranked, counts = [], {}
        for task in self._tasks.values():
            if task.is_over:
                continue
            for visitor in task.waiting:
                counts[visitor] = counts.get(visitor, -1) + 1
            ranked.append((min(counts[visitor] for visitor in task.waiting), task))
        return [task for _rank, task in sorted(ranked, key=lambda each: each[0])][: self.at_once]

    def _work(self):
        for task in self._turn_by_turn():
            task.context.run(task.step)

    def _turn_by_turn(self) -> Iterator[_Task]:
        """Of the active tasks always the one whose turn is longest ago."""
        while True:
            with self._changed:
                self._forget_gone()
                while not (active := self._active()):
                    self._changed.wait()
                task = min(active, key=lambda each: each.turn)
                self._turns += 1
                task.turn = self._turns
            yield task
