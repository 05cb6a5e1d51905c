"""What the browser asks about long computations: that one begins, how far it is, that it is no longer wanted."""

from collections.abc import Callable, Sequence
from typing import Any

from explorer.language import _
from explorer.state.errors import UserError
from explorer.state.page_state import PageState
from explorer.tracing.job_queue import JobQueue, Progress
from explorer.tracing.runs import Runs
from explorer.web.answers.open_view import open_view_of
from explorer.web.errors import told
from explorer.web.http.request_types import State
from explorer.web.protocol import in_tab

MOST_NAME = 64  # characters


class JobEndpoints:
    """A visitor is a name that the browser made up when the page was opened.

    Args:
        runs: know what the models compute.
        others: queues of jobs that others begin; how far they are is asked here, too.
    """

    def __init__(self, runs: Runs, others: Sequence[JobQueue] = ()):
        self.runs, self.queue, self.others = runs, JobQueue(), others

    @property
    def functions(self) -> list[Callable]:
        return [self.begin_job, self.job_progress, self.leave_job]

    def begin_job(self, state: State, picture: str, visitor: str) -> dict[str, Any]:
        """What a picture waits for is worked out from now on: how far it is, see `packed`.

        Raises:
            UserError, CheckpointError: there is no such picture, or too many wait already.
        """
        check_names(picture, visitor)
        open_view = open_view_of(self.runs, PageState.parse(state))
        job = open_view.job_of(picture.removeprefix(in_tab(open_view.view.name, "")))
        return packed(self.queue.begin(visitor, job) if job else Progress("done"))

    def job_progress(self, visitor: str, name: str) -> dict[str, Any]:
        """How far a job is that the visitor waits for; who asks no more is taken to have left."""
        check_names(visitor, name)
        known = (queue.progress(visitor, name) for queue in (self.queue, *self.others))
        return packed(next((progress for progress in known if progress.state != "gone"), Progress("gone")))

    def leave_job(self, visitor: str, name: str) -> dict[str, Any]:
        """The visitor no longer waits for it."""
        check_names(visitor, name)
        for queue in (self.queue, *self.others):
            queue.leave(visitor, name)
        return packed(Progress("gone"))


def check_names(*names: Any):
    """UserError where somebody sent what is none."""
    for name in names:
        if not isinstance(name, str) or not 0 < len(name) <= MOST_NAME:
            raise UserError(
                _("a name is a text of at most {most} characters, got {got!r:.80}", most=MOST_NAME, got=name)
            )


def packed(progress: Progress) -> dict[str, Any]:
    """For the browser: `state`, `done` of how many, `seconds` that are left, and `error`, a sentence or ""."""
    return {
        "state": progress.state,
        "done": progress.done,
        "of": progress.of,
        "seconds": progress.seconds,
        "error": told(progress.error) if progress.error else "",
    }
