"""Endpoints for long computations: start, progress, cancel; and for models of the Hugging Face Hub."""

from collections.abc import Callable, Sequence
from typing import Any

from explorer.errors import UserError
from explorer.state.page_state import PageState
from explorer.tracing.jobs import JobQueue, Progress
from explorer.tracing.model_catalog import format_bytes
from explorer.tracing.model_library import ModelLibrary
from explorer.tracing.model_loading import HubModelOpener
from explorer.tracing.run_service import RunService
from explorer.translations import _
from explorer.web.answers.open_view import make_open_view
from explorer.web.error_messages import user_message
from explorer.web.middleware.request_types import State
from explorer.web.protocol import element_id
from explorer.web.widgets.header import HubModelForm

MAX_NAME_CHARACTERS = 64  # characters


class JobEndpoints:
    """Endpoints of job queues. A visitor is a random name that the page chooses when it is opened.

    Args:
        runs: access to models and runs.
        other_queues: queues whose jobs are started elsewhere; their progress is reported here, too.
    """

    def __init__(self, runs: RunService, other_queues: Sequence[JobQueue] = ()):
        self.runs, self.queue, self.other_queues = runs, JobQueue(), other_queues

    @property
    def functions(self) -> list[Callable]:
        return [self.begin_job, self.job_progress, self.leave_job]

    def begin_job(self, state: State, picture: str, visitor: str) -> dict[str, Any]:
        """Start the job that a figure needs, and return its progress (see `progress_payload`).

        Raises:
            UserError, CheckpointError: there is no such figure, or the queue is full.
        """
        check_names(picture, visitor)
        open_view = make_open_view(self.runs, PageState.parse(state))
        job = open_view.pending_job(picture.removeprefix(element_id(open_view.view.name, "")))
        return progress_payload(self.queue.begin(visitor, job) if job else Progress("done"))

    def job_progress(self, visitor: str, name: str) -> dict[str, Any]:
        """Return the progress of a visitor's job; visitors who stop polling are dropped."""
        check_names(visitor, name)
        progresses = (queue.progress(visitor, name) for queue in (self.queue, *self.other_queues))
        return progress_payload(
            next((progress for progress in progresses if progress.state != "gone"), Progress("gone"))
        )

    def leave_job(self, visitor: str, name: str) -> dict[str, Any]:
        """Remove a visitor from those waiting for a job."""
        check_names(visitor, name)
        for queue in (self.queue, *self.other_queues):
            queue.leave(visitor, name)
        return progress_payload(Progress("gone"))


def check_names(*names: Any):
    """Raise UserError if a value is not a non-empty text of at most `MAX_NAME_CHARACTERS`."""
    for name in names:
        if not isinstance(name, str) or not 0 < len(name) <= MAX_NAME_CHARACTERS:
            raise UserError(
                _("a name is a text of at most {most} characters, got {got!r:.80}", most=MAX_NAME_CHARACTERS, got=name)
            )


def progress_payload(progress: Progress) -> dict[str, Any]:
    """Return a job's progress for the browser.

    Returns:
        `state`; `done` and `of`, units done and in all; `seconds` that remain; `error`, a sentence or "".
    """
    return {
        "state": progress.state,
        "done": progress.done,
        "of": progress.total,
        "seconds": progress.seconds,
        "error": user_message(progress.error) if progress.error else "",
    }


MAX_CONCURRENT_JOBS = 2  # models that are fetched or compared


class HubEndpoints:
    """Endpoints that open and check models of the Hub; `JobEndpoints` reports progress and cancels.

    Args:
        library: to which opened models are added.
    """

    def __init__(self, library: ModelLibrary):
        self.library, self.opening, self.queue = library, HubModelOpener(library), JobQueue(MAX_CONCURRENT_JOBS)

    @property
    def functions(self) -> list[Callable]:
        return [self.model_needs, self.begin_opening, self.begin_check]

    def model_needs(self, name: str) -> dict[str, str]:
        """Return the requirements of opening a model as text in `words`, and the name of the `job` that opens it.

        Raises:
            UserError, CheckpointError: see `HubModelOpener.requirements`.
        """
        needs = self.opening.requirements(name)
        fetch = _("It is on this machine.")
        if needs.download:
            fetch = _("{size} to be fetched.", size=format_bytes(needs.download))
        takes = _("Its weights take up to {size} of memory.", size=format_bytes(needs.memory))
        left = "" if needs.left is None else _("{size} are free.", size=format_bytes(needs.left))
        return {"words": " ".join(filter(None, (fetch, takes, left))), "job": self.opening.open_job(name).name}

    def begin_opening(self, name: str, visitor: str) -> dict[str, Any]:
        """Start downloading and loading a model, and return the progress; raises the errors of `model_needs`."""
        check_names(visitor)
        return progress_payload(self.queue.begin(visitor, self.opening.open_job(name)))

    def begin_check(self, checkpoint: str, visitor: str) -> dict[str, Any]:
        """Start comparing a model with another implementation, and return the progress.

        Raises:
            UserError: there is no such checkpoint.
        """
        check_names(visitor)
        if checkpoint not in self.library.checkpoints:
            raise UserError(_("the checkpoint must be a name, got {got!r}", got=checkpoint))
        job = self.opening.self_check_job(checkpoint)
        return progress_payload(self.queue.begin(visitor, job) if job else Progress("done"))

    def model_status(self, checkpoint: str) -> dict[str, Any]:
        """Return the Hub widget's contents for the visible model."""
        catalog, job = self.library.catalog, self.opening.self_check_job(checkpoint)
        is_external = catalog.is_external(checkpoint) and checkpoint != catalog.own_module  # a view compares that
        return HubModelForm.pack(catalog.allowed_names, self.opening.agreement(checkpoint), job, is_external)
