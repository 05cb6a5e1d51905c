"""Opening a model of the hub, and comparing it with another implementation: as jobs, since both take long."""

import importlib.util
import logging
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from explorer.language import _
from explorer.state.errors import UserError
from explorer.tracing.jobs import RESULTS, Job, Pieces
from explorer.tracing.library import Library
from explorer.tracing.memory_left import bytes_of_weights, check_room
from explorer.tracing.work import go_on
from model.checkpoint import CheckpointError, version
from model.errors import ModelError
from model.pretrained.hub import Listing, downloaded, listing, on_disk
from model.pretrained.self_check import Agreement, has_known_logits, self_check

LOOK = 0.05  # seconds between two looks at what another thread does
Tell = Callable[[int], None]
LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class Needs:
    """What opening a model takes.

    Attributes:
        download: bytes to be fetched.
        memory: bytes that its weights take, at most.
        left: bytes that are free; None where nobody can tell.
    """

    download: int
    memory: int
    left: int | None


class OpeningModels:
    """Has models opened that visitors name.

    Args:
        library: which offers them from then on.
    """

    def __init__(self, library: Library):
        self.library = library
        self._agreements: dict[tuple, Agreement] = {}  # by a model's name and the version of its files

    def needs(self, name: str) -> Needs:
        """What it would take.

        Raises:
            UserError: it may not be opened here.
            CheckpointError: the hub has no such model, or is out of reach, or the weights do not fit into memory.
        """
        found = self._listing(name)
        memory = found.weight_bytes if found else bytes_of_weights(on_disk(name))
        return Needs(found.num_bytes if found else 0, *check_room(name, memory, self.library.device))

    def job(self, name: str) -> Job:
        """Downloads a model, unless it is there, and loads it; errors as of `needs`."""
        self.needs(name)
        found = self._listing(name)

        def work(tell: Tell):
            if found:
                downloaded(found, tell)
            self.library.model(name)

        question = "open", name
        if found:  # an earlier download of it is gone, or there was none
            RESULTS.drop(lambda known: known == question)
        return Job(question, lambda: beside(work), units=found.num_bytes if found else 1, products=0)

    def _listing(self, name: str) -> Listing | None:
        """None of a model that is here."""
        if not self.library.offered.may_open(name):
            told = _(
                "a model to open is named as on the Hugging Face Hub, owner/name, got {got!r:.120}; a file or folder "
                "is opened by whoever starts the app, with --checkpoint PATH",
                got=name,
            )
            if names := self.library.offered.listed_names:
                told = _("of the Hugging Face Hub {names} may be opened here", names=", ".join(names))
            elif not self.library.offered.opens:
                told = _("no model is opened here: the app was started so")
            raise UserError(told)
        try:
            return None if on_disk(name) else listing(name)
        except ModelError as error:
            raise CheckpointError("{why}", why=error) from None

    def agreement(self, checkpoint: str) -> Agreement | None:
        """How a model compared with another implementation; None where it was not compared."""
        return self._agreements.get(self._as_it_is(checkpoint))

    def _as_it_is(self, checkpoint: str) -> tuple:
        return checkpoint, version(self.library.offered.place(checkpoint))

    def check_of(self, checkpoint: str) -> Job | None:
        """Compares a model from elsewhere with another implementation; None where there is none, or it is done."""
        compared = self._as_it_is(checkpoint)
        if not self.library.offered.is_from_elsewhere(checkpoint) or compared in self._agreements:
            return None
        place = Path(self.library.offered.place(checkpoint))
        known = has_known_logits(place)
        if not known and not (place.is_dir() and importlib.util.find_spec("transformers")):
            return None

        def work(tell: Tell):
            lm, tokenizer = self.library.model(checkpoint)
            found = self_check(place, lm, tokenizer)
            if found:
                LOG.info("%s: %s", checkpoint, found)
                self._agreements[compared] = found

        return Job(("check", *compared), lambda: beside(work), units=1, products=0)


def beside(work: Callable[[Tell], Any]) -> Pieces:
    """The pieces of a job that a thread of its own does, so that none takes long.

    Args:
        work: is given the function to tell how many units are done, which ends it where nobody waits for it any more.
    """
    done = 0

    def tell(units: int):
        nonlocal done
        done = units
        go_on()

    pool = ThreadPoolExecutor(1, thread_name_prefix="opening")
    future = pool.submit(copy_context().run, work, tell)
    pool.shutdown(wait=False)
    while not future.done():
        time.sleep(LOOK)
        yield done
    try:
        future.result()
    except CheckpointError:
        raise
    except ModelError as error:
        raise CheckpointError("{why}", why=error) from None
    return np.zeros(1)  # a result that is kept: that it was done
