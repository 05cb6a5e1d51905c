"""Models opened as jobs: those of the Hugging Face Hub, and the next ones of a training in advance."""

import importlib.util
import logging
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from explorer.errors import UserError
from explorer.interventions import Intervention
from explorer.state.run import checkpoints_of_training, model_name
from explorer.tracing.jobs import RESULTS, Job, JobSteps
from explorer.tracing.model_catalog import require_memory, weight_num_bytes
from explorer.tracing.model_library import ModelLibrary, model_num_bytes
from explorer.tracing.request_budget import check_budget
from explorer.translations import _
from model.checkpoint import CheckpointError, checkpoint_file_stats
from model.errors import ModelError
from model.pretrained.hub import HubFiles, cached_folder, download_files, list_hub_files
from model.pretrained.reference_logits import LogitAgreement, compare_with_reference, has_reference_logits

POLL_INTERVAL_S = 0.05  # seconds between two looks at what another thread does
ProgressCallback = Callable[[int], None]
LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class ModelRequirements:
    """Download and memory that opening a model needs.

    Attributes:
        download: bytes to download.
        memory: bytes of the weights in memory, at most.
        left: free bytes; None if unknown.
    """

    download: int
    memory: int
    left: int | None


class HubModelOpener:
    """Opens the models that users name.

    Args:
        library: offers the models once they are open.
    """

    def __init__(self, library: ModelLibrary):
        self.library = library
        self._agreements: dict[tuple, LogitAgreement] = {}  # by a model's name and the version of its files

    def requirements(self, name: str) -> ModelRequirements:
        """Return the download and memory that opening a model needs.

        Raises:
            UserError: it may not be opened here.
            CheckpointError: the hub has no such model, or cannot be reached, or the weights do not fit into memory.
        """
        hub_files = self._hub_files(name)
        memory = hub_files.weight_bytes if hub_files else weight_num_bytes(cached_folder(name))
        return ModelRequirements(
            hub_files.num_bytes if hub_files else 0, *require_memory(name, memory, self.library.device)
        )

    def open_job(self, name: str) -> Job:
        """Return the job that downloads a model, if needed, and loads it; raises as `requirements` does."""
        self.requirements(name)
        hub_files = self._hub_files(name)

        def work(on_progress: ProgressCallback):
            if hub_files:
                download_files(hub_files, on_progress)
            self.library.model(name)

        key = "open", name
        if hub_files:  # an earlier download of it is gone, or there was none
            RESULTS.drop(lambda cached_key: cached_key == key)
        return Job(key, lambda: run_in_thread(work), units=hub_files.num_bytes if hub_files else 1, macs=0)

    def _hub_files(self, name: str) -> HubFiles | None:
        """Return the model's files on the hub; None if the model is on this machine."""
        if not self.library.catalog.may_open(name):
            message = _(
                "a model to open is named as on the Hugging Face Hub, owner/name, got {got!r:.120}; a file or folder "
                "is opened by whoever starts the app, with --checkpoint PATH",
                got=name,
            )
            if names := self.library.catalog.allowed_names:
                message = _(
                    "this server only opens these models of the Hugging Face Hub: {names}", names=", ".join(names)
                )
            elif not self.library.catalog.allows_opening:
                message = _("this server does not open other models (see its options --no-open and --models)")
            raise UserError(message)
        try:
            return None if cached_folder(name) else list_hub_files(name)
        except ModelError as error:
            raise CheckpointError("{why}", why=error) from None

    def agreement(self, checkpoint: str) -> LogitAgreement | None:
        """Return the result of comparing a model with another implementation; None if it was not compared."""
        return self._agreements.get(self._version(checkpoint))

    def _version(self, checkpoint: str) -> tuple:
        return checkpoint, checkpoint_file_stats(self.library.catalog.locate(checkpoint))

    def self_check_job(self, checkpoint: str) -> Job | None:
        """Return the job that compares an external model with another implementation.

        None if there is no other implementation, or the comparison is done.
        """
        version = self._version(checkpoint)
        if not self.library.catalog.is_external(checkpoint) or version in self._agreements:
            return None
        path = Path(self.library.catalog.locate(checkpoint))
        has_reference = has_reference_logits(path)
        if not has_reference and not (path.is_dir() and importlib.util.find_spec("transformers")):
            return None

        def work(on_progress: ProgressCallback):
            lm, tokenizer = self.library.model(checkpoint)
            agreement = compare_with_reference(path, lm, tokenizer)
            if agreement:
                LOG.info("%s: %s", checkpoint, agreement)
                self._agreements[version] = agreement

        return Job(("check", *version), lambda: run_in_thread(work), units=1, macs=0)


def run_in_thread(work: Callable[[ProgressCallback], Any]) -> JobSteps:
    """Run work in its own thread; yield the units that are done, at short intervals.

    Args:
        work: called with a callback for the number of units done; the callback raises if the job was cancelled.
    """
    done = 0

    def on_progress(units: int):
        nonlocal done
        done = units
        check_budget()

    pool = ThreadPoolExecutor(1, thread_name_prefix="opening")
    future = pool.submit(copy_context().run, work, on_progress)
    pool.shutdown(wait=False)
    while not future.done():
        time.sleep(POLL_INTERVAL_S)
        yield done
    try:
        future.result()
    except CheckpointError:
        raise
    except ModelError as error:
        raise CheckpointError("{why}", why=error) from None
    return np.zeros(1)  # the cached result: the job is done


MAX_PREFETCH_BYTES = 256 << 20  # of one training's models: larger ones are loaded on request


class Prefetcher:
    """Loads other steps of a training in the background, one at a time, and captures the next step's run.

    Args:
        library: caches the models; none is evicted for a prefetched one.
        max_bytes: of all steps together.
    """

    def __init__(self, library: ModelLibrary, max_bytes: int = MAX_PREFETCH_BYTES):
        self.library, self.max_bytes = library, max_bytes
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="loading-ahead")
        self._loading: dict[str, Future] = {}  # of each model's steps

    def prefetch_steps(self, checkpoint: str) -> Future | None:
        """Start loading the other steps of a loaded checkpoint's training, the nearest first.

        None if no step is left to load, or they are being loaded.
        """
        series = checkpoints_of_training(checkpoint, self.library.checkpoints)
        if checkpoint not in series or ((running := self._loading.get(model_name(checkpoint))) and not running.done()):
            return None
        index = series.index(checkpoint)
        nearest = sorted(series, key=lambda name: abs(series.index(name) - index))
        if all(map(self.library.has, nearest[1:])):
            return None
        loading = self._loading[model_name(checkpoint)] = self._worker.submit(self._load, nearest)
        return loading

    def prefetch_next_token(
        self, checkpoint: str, token_ids: tuple[int, ...], interventions: tuple[Intervention, ...] = ()
    ) -> Future | None:
        """Capture the same tokens at the next step, if the run of the step on the other side was captured before.

        The user is then stepping in that direction. None if there is nothing to capture, or no such direction.
        """
        series = checkpoints_of_training(checkpoint, self.library.checkpoints)
        if checkpoint not in series or not 0 < (index := series.index(checkpoint)) < len(series) - 1:
            return None
        unread = [
            n for n in (series[index - 1], series[index + 1]) if not self.library.has_trace(n, token_ids, interventions)
        ]
        if len(unread) != 1 or not self.library.has(unread[0]):
            return None
        return self._worker.submit(self.library.trace, unread[0], token_ids, interventions)

    def _load(self, nearest: list[str]):
        first, *others = nearest
        try:
            size = model_num_bytes(self.library.model(first)[0])
        except ModelError:
            return
        for name in others[: max(0, self.max_bytes // size - 1)]:
            if self.library.has(name):
                continue
            if not self.library.fits_without_eviction(size):
                return
            try:
                self.library.model(name)
            except ModelError as error:  # a request for it reports the error
                LOG.info("prefetching failed: %s", error)
