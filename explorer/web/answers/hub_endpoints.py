"""Endpoints for Hugging Face Hub models: requirements, opening, and comparison with another implementation."""

from collections.abc import Callable
from typing import Any

from explorer.state.errors import UserError
from explorer.tracing.jobs import JobQueue, Progress
from explorer.tracing.library import Library
from explorer.tracing.model_catalog import format_bytes
from explorer.tracing.model_loading import HubModelOpener
from explorer.translations import _
from explorer.web.answers.job_endpoints import check_names, progress_payload
from explorer.web.widgets.header import HubModelForm

MAX_CONCURRENT_JOBS = 2  # models that are fetched or compared


class HubEndpoints:
    """Endpoints that open and check models of the Hub; `JobEndpoints` reports progress and cancels.

    Args:
        library: to which opened models are added.
    """

    def __init__(self, library: Library):
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
        is_external = catalog.is_external(checkpoint)
        return HubModelForm.pack(catalog.allowed_names, self.opening.agreement(checkpoint), job, is_external)
