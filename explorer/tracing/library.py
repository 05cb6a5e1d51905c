"""Models and traces, loaded once and kept within bounds."""

import logging
import threading
import time
from dataclasses import replace

import torch

from explorer.language import _
from explorer.state.interventions import FromOther, Intervention
from explorer.tracing.capture import capture, offered
from explorer.tracing.donation import ready
from explorer.tracing.freed_memory import give_back
from explorer.tracing.lru import LRU
from explorer.tracing.models import named, offer
from explorer.tracing.trace import Trace
from explorer.tracing.translation import translated
from explorer.tracing.work import go_on
from model.checkpoint import CheckpointError, list_checkpoints, load_checkpoint, version
from model.tokenizer import Tokenizer
from model.transformer_lm import TransformerLM

MOST_TRACE_BYTES = 700 << 20
CAPTURES_AT_ONCE = 2  # each holds as much memory as what it captures, and its products already share all cores
GIVE_BACK_AFTER = 256 << 20  # bytes captured: oftener, captures wait for pages that they have just given away
LOG = logging.getLogger(__name__)


class Library:
    """Answers which everybody who asks the same question shares.

    Args:
        device: "cpu", "cuda", "mps", or "auto" for the first that is there of cuda, mps, cpu.
        most_models: models kept; the one unused longest goes first.
        most_trace_bytes: likewise for traces.
    """

    def __init__(self, device: str = "auto", most_models: int = 4, most_trace_bytes: int = MOST_TRACE_BYTES):
        self.device = pick_device() if device == "auto" else device
        self._models = LRU(most_models, size=lambda model: 1)
        self._traces = LRU(most_trace_bytes, size=lambda trace: trace.num_bytes)
        self._capturing = threading.Semaphore(CAPTURES_AT_ONCE)
        self._captured, self._counting = 0, threading.Lock()
        self._listed: set[str] = set()

    @property
    def checkpoints(self) -> list[str]:
        return list_checkpoints()

    def model(self, checkpoint: str) -> tuple[TransformerLM, Tokenizer]:
        """The model and tokenizer of a checkpoint in `checkpoints/`, as its files are now.

        Raises:
            CheckpointError: it is not one of `checkpoints` (a path, say, is never opened) or cannot be loaded.
        """
        identity = checkpoint, self._version(checkpoint), self.device
        return self._models.get((identity,), lambda: self._load(identity))

    def _version(self, checkpoint: str) -> tuple:
        """The version of a checkpoint that there is; what was listed once is not listed again as long as it is there,
        as that looks into every folder, and an answer asks for a model many times."""
        if checkpoint in self._listed:
            config, *others = version(checkpoint)
            if config:
                return config, *others
        self._listed = set(self.checkpoints)
        if checkpoint not in self._listed:
            told = _("there is no checkpoint {name!r}; there are: {names}")
            raise CheckpointError(told.format(name=checkpoint, names=", ".join(sorted(self._listed))))
        return version(checkpoint)

    def _load(self, identity: tuple) -> tuple[TransformerLM, Tokenizer]:
        (checkpoint, as_asked, device), began = identity, time.monotonic()
        try:
            lm, tokenizer = load_checkpoint(checkpoint, device)
        finally:
            if version(checkpoint) != as_asked:
                told = _("checkpoint {name!r} is being written: ask again in a moment", name=checkpoint)
                raise CheckpointError(told) from None

        def is_outdated(key: tuple) -> bool:
            return key[0][0] == checkpoint and key[0] != identity

        LOG.info("loaded %s on %s in %.1f s", checkpoint, device, time.monotonic() - began)
        self._models.drop(is_outdated)
        self._traces.drop(is_outdated)
        return named(lm, identity), tokenizer

    def trace(self, checkpoint: str, token_ids: tuple[int, ...], edits: tuple[Intervention, ...] = ()) -> Trace:
        """The captured run of a checkpoint over tokens, with edits also that without, as its `baseline`.

        Errors are those of `model` and `capture`.
        """
        return self.trace_of(*self.model(checkpoint), token_ids, edits)

    def trace_of(
        self, lm: TransformerLM, tokenizer: Tokenizer, token_ids: tuple[int, ...], edits: tuple[Intervention, ...] = ()
    ) -> Trace:
        """The same of a model that this library gave."""
        identity = offer(lm, offered)

        def run() -> Trace:
            go_on(tokens=len(token_ids))
            changes = self.ready(lm, tokenizer, token_ids, edits)
            with self._capturing:
                trace = capture(lm, token_ids, changes, tokenizer=tokenizer)
            self._count(trace)
            return replace(trace, baseline=self.trace_of(lm, tokenizer, token_ids)) if edits else trace

        trace = self._traces.get((identity, token_ids, edits), run)
        if edits:  # a baseline stays, and is counted, longer than what holds it
            self._traces.get((identity, token_ids, ()), lambda: trace.baseline)
        return trace

    def ready(
        self, lm: TransformerLM, tokenizer: Tokenizer, token_ids: tuple[int, ...], edits: tuple[Intervention, ...]
    ) -> tuple[Intervention, ...]:
        """A run's edits with what they take of other runs (see `tracing.donation`)."""

        def trace_of(edit: FromOther) -> Trace:
            other, other_tokenizer = self.model(edit.source.checkpoint)
            ids = edit.source.prompt or edit.prompt  # one without a text of its own reads the same
            if not edit.source.prompt and other_tokenizer.vocabulary != tokenizer.vocabulary:
                ids = translated(ids, tokenizer, other_tokenizer)
            taken = tuple(each.of_prompt(ids) for each in edit.source.edits)
            return self.trace_of(other, other_tokenizer, ids, taken)

        return ready(edits, lm.config, token_ids, tokenizer.vocabulary, trace_of)

    def _count(self, trace: Trace):
        """Now and then give back what traces left that were let go, and what came about beside them."""
        with self._counting:
            self._captured += trace.num_bytes
            if due := self._captured >= GIVE_BACK_AFTER:
                self._captured = 0
        if due:
            give_back()


def pick_device() -> str:
    if torch.cuda.is_available():
        return "cuda"
    return "mps" if torch.backends.mps.is_available() else "cpu"
