"""What is likely to be asked for next, made ready before it is: models of the same training, and runs of them."""

import logging
from concurrent.futures import Future, ThreadPoolExecutor

from explorer.state.interventions import Intervention
from explorer.state.series import model_of, series_of
from explorer.tracing.library import Library, bytes_of
from model.errors import ModelError

MOST_BYTES = 256 << 20  # of one training's models: larger ones are loaded when they are asked for
LOG = logging.getLogger(__name__)


class LoadingAhead:
    """Loads the other steps of a training in the background, one at a time, and captures the next run of somebody who
    goes through them.

    Args:
        library: which keeps them, and lets go of none for their sake.
        most_bytes: of all steps together.
    """

    def __init__(self, library: Library, most_bytes: int = MOST_BYTES):
        self.library, self.most_bytes = library, most_bytes
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="loading-ahead")
        self._loading: dict[str, Future] = {}  # of each model's steps

    def load_steps(self, checkpoint: str) -> Future | None:
        """Begin with those of the same training as a checkpoint, which is there, the nearest to it first; None where
        none is left to load, or they are being loaded."""
        series = series_of(checkpoint, self.library.checkpoints)
        if checkpoint not in series or ((known := self._loading.get(model_of(checkpoint))) and not known.done()):
            return None
        at = series.index(checkpoint)
        nearest = sorted(series, key=lambda name: abs(series.index(name) - at))
        if all(map(self.library.has, nearest[1:])):
            return None
        loading = self._loading[model_of(checkpoint)] = self._worker.submit(self._load, nearest)
        return loading

    def capture_next(
        self, checkpoint: str, token_ids: tuple[int, ...], edits: tuple[Intervention, ...] = ()
    ) -> Future | None:
        """Capture the same tokens one step further, where the step on the other side has read them, too: somebody goes
        that way. None where there is nothing to be captured, or no such way."""
        series = series_of(checkpoint, self.library.checkpoints)
        if checkpoint not in series or not 0 < (at := series.index(checkpoint)) < len(series) - 1:
            return None
        unread = [n for n in (series[at - 1], series[at + 1]) if not self.library.has_trace(n, token_ids, edits)]
        if len(unread) != 1 or not self.library.has(unread[0]):
            return None
        return self._worker.submit(self.library.trace, unread[0], token_ids, edits)

    def _load(self, nearest: list[str]):
        first, *others = nearest
        try:
            size = bytes_of(self.library.model(first)[0])
        except ModelError:
            return
        for name in others[: max(0, self.most_bytes // size - 1)]:
            if self.library.has(name):
                continue
            if not self.library.has_room(size):
                return
            try:
                self.library.model(name)
            except ModelError as error:  # who asks for it is told
                LOG.info("not loaded ahead: %s", error)
