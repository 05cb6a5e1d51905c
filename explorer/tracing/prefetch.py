"""Prefetching of models of the same training, and of their runs."""

import logging
from concurrent.futures import Future, ThreadPoolExecutor

from explorer.state.checkpoint_names import checkpoints_of_training, model_name
from explorer.state.interventions import Intervention
from explorer.tracing.library import Library, model_num_bytes
from model.errors import ModelError

MAX_BYTES = 256 << 20  # of one training's models: larger ones are loaded on request
LOG = logging.getLogger(__name__)


class Prefetcher:
    """Loads other steps of a training in the background, one at a time, and captures the next step's run.

    Args:
        library: caches the models; none is evicted for a prefetched one.
        max_bytes: of all steps together.
    """

    def __init__(self, library: Library, max_bytes: int = MAX_BYTES):
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
