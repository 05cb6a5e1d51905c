"""What the browser asks about models of the hub: what one takes, that it is opened, that one is compared."""

from collections.abc import Callable
from typing import Any

from explorer.language import _
from explorer.state.errors import UserError
from explorer.tracing.job_queue import JobQueue, Progress
from explorer.tracing.library import Library
from explorer.tracing.memory_left import in_bytes
from explorer.tracing.opening_models import OpeningModels
from explorer.web.answers.job_endpoints import check_names, packed
from explorer.web.widgets.open_model import OpenModel

MOST_AT_ONCE = 2  # models that are fetched or compared


class OpeningEndpoints:
    """How far it is, and that nobody waits any more, `JobEndpoints` answers.

    Args:
        library: which offers the models from then on.
    """

    def __init__(self, library: Library):
        self.library, self.opening, self.queue = library, OpeningModels(library), JobQueue(MOST_AT_ONCE)

    @property
    def functions(self) -> list[Callable]:
        return [self.model_needs, self.begin_opening, self.begin_check]

    def model_needs(self, name: str) -> dict[str, str]:
        """What opening a model takes, in `words`, and the name of the `job` that does it.

        Raises:
            UserError, CheckpointError: see `OpeningModels.needs`.
        """
        needs = self.opening.needs(name)
        fetch = _("It is on this machine.")
        if needs.download:
            fetch = _("{size} to be fetched.", size=in_bytes(needs.download))
        takes = _("Its weights take up to {size} of memory.", size=in_bytes(needs.memory))
        left = "" if needs.left is None else _("{size} are free.", size=in_bytes(needs.left))
        return {"words": " ".join(filter(None, (fetch, takes, left))), "job": self.opening.job(name).name}

    def begin_opening(self, name: str, visitor: str) -> dict[str, Any]:
        """The model is fetched and loaded from now on; errors as above."""
        check_names(visitor)
        return packed(self.queue.begin(visitor, self.opening.job(name)))

    def begin_check(self, checkpoint: str, visitor: str) -> dict[str, Any]:
        """A model is compared with another implementation from now on.

        Raises:
            UserError: there is none of that name.
        """
        check_names(visitor)
        if checkpoint not in self.library.checkpoints:
            raise UserError(_("the checkpoint must be a name, got {got!r}", got=checkpoint))
        job = self.opening.check_of(checkpoint)
        return packed(self.queue.begin(visitor, job) if job else Progress("done"))

    def about(self, checkpoint: str) -> dict[str, Any]:
        """What the page says of the model shown."""
        offered, job = self.library.offered, self.opening.check_of(checkpoint)
        elsewhere = offered.is_from_elsewhere(checkpoint)
        return OpenModel.pack(offered.listed_names, self.opening.agreement(checkpoint), job, elsewhere)
