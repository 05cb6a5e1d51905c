"""Models and traces, loaded once and kept within bounds."""

import logging
import threading
import time
from collections.abc import Collection, Hashable, Mapping
from dataclasses import replace
from typing import Any
from weakref import WeakMethod

import torch

from explorer.language import _
from explorer.state.interventions import FromOther, Intervention
from explorer.tracing import jobs, lent_gpu
from explorer.tracing.capture import offered
from explorer.tracing.diagnosis import load_report
from explorer.tracing.donation import ready
from explorer.tracing.lru import LRU
from explorer.tracing.memory_left import bytes_of_weights, check_room
from explorer.tracing.models import Offer, identity_of, named, offer
from explorer.tracing.offered_models import OfferedModels
from explorer.tracing.on_demand import MOST_BYTES, MOST_BYTES_OF_BLOCKS, bytes_of_arrays, looked_at_bytes
from explorer.tracing.trace import Trace
from explorer.tracing.training import training_of
from explorer.tracing.translation import translated
from explorer.tracing.work import go_on
from model.checkpoint import CheckpointError, checkpoint_folder, load_checkpoint, version
from model.freed_memory import give_back
from model.offloading import Device
from model.tokenizer import Tokenizer
from model.transformer_lm import TransformerLM

MOST_TRACE_BYTES = 512 << 20
MOST_MODEL_BYTES = 4 << 30
MOST_BYTES_OF_A_TRACE = 192 << 20  # of one that keeps every value: half a thousand tokens of a model we ship
CAPTURES_AT_ONCE = 2  # each holds as much memory as what it captures, and its products already share all cores
GIVE_BACK_AFTER = 256 << 20  # bytes captured: oftener, captures wait for pages that they have just given away
LOG = logging.getLogger(__name__)


class Library:
    """Answers which everybody who asks the same question shares.

    Args:
        device: "cpu", "cuda", "mps", or "auto" for the first that is there of cuda, mps, cpu.
        most_model_bytes: of the models kept; the one unused longest goes first.
        most_trace_bytes: likewise for traces.
        most_bytes_of_a_trace: beyond which its values are computed when they are looked at (see `capture`).
        hub_names: of models of the Hugging Face Hub that may be asked for.
        device_map, max_memory: of models that are spread over several devices, in place of `device` (see
            `load_checkpoint`).
        dtype: that models from elsewhere compute with, such as "float32"; None for the type of their weights.

    Attributes:
        offered: which models there are.
    """

    def __init__(
        self,
        device: str = "auto",
        most_model_bytes: int = MOST_MODEL_BYTES,
        most_trace_bytes: int = MOST_TRACE_BYTES,
        most_bytes_of_a_trace: int = MOST_BYTES_OF_A_TRACE,
        hub_names: Collection[str] = (),
        device_map: str | None = None,
        max_memory: Mapping[Device, int | str] | None = None,
        dtype: str | None = None,
    ):
        self.offered = OfferedModels(hub_names)
        self.device = pick_device() if device == "auto" else device
        self.device_map, self.max_memory = device_map, max_memory
        self.dtype: torch.dtype | None = getattr(torch, dtype) if dtype else None
        self._models = LRU(most_model_bytes, size=lambda model: bytes_of(model[0]))
        self._traces = LRU(most_trace_bytes, size=lambda trace: trace.num_bytes)
        self.most_bytes_of_a_trace = most_bytes_of_a_trace
        self._capturing = threading.Semaphore(CAPTURES_AT_ONCE)
        self._captured, self._counting = 0, threading.Lock()

    @property
    def checkpoints(self) -> list[str]:
        """Names of all models that may be asked for."""
        return self.offered.names

    def model(self, checkpoint: str) -> tuple[TransformerLM, Tokenizer]:
        """The model and the tokenizer of a checkpoint, as its files are now.

        Raises:
            CheckpointError: there is none of that name (see `OfferedModels.place`), or it cannot be loaded.
        """
        identity = self._identity(checkpoint)
        return self._models.get((identity,), lambda: self._load(identity))

    def _identity(self, checkpoint: str) -> tuple:
        return checkpoint, version(self.offered.place(checkpoint)), self.device

    def _load(self, identity: tuple) -> tuple[TransformerLM, Tokenizer]:
        (checkpoint, as_asked, device), began = identity, time.monotonic()
        place = self.offered.place(checkpoint)
        dtype = self.dtype if self.offered.is_from_elsewhere(checkpoint) else None
        if self.offered.is_from_elsewhere(checkpoint) and not self.device_map:
            takes, _left = check_room(checkpoint, bytes_of_weights(place, dtype), self.device)
            LOG.info("loading %s: its weights take up to %.0f MB of memory", checkpoint, takes / 1e6)
        try:
            tokenizer = self.offered.own_tokenizer if checkpoint == self.offered.own_module else None
            spread = {"device_map": self.device_map, "max_memory": self.max_memory}
            lm, tokenizer = load_checkpoint(place, device, dtype, tokenizer=tokenizer, **spread)
        finally:
            if version(place) != as_asked:
                told = _("checkpoint {name!r} is being written: ask again in a moment", name=checkpoint)
                raise CheckpointError(told) from None

        def is_outdated(key: tuple) -> bool:
            return key[0][0] == checkpoint and key[0] != identity

        LOG.info("loaded %s on %s in %.1f s", checkpoint, device, time.monotonic() - began)
        self._models.drop(is_outdated)
        self._traces.drop(is_outdated)
        return named(lm, identity), tokenizer

    def identity(self, lm: TransformerLM) -> Hashable:
        """Of a model that this library gave, under which it answers from now on (see `explorer.tracing.models`)."""
        return offer(lm, self._offered)

    def has(self, checkpoint: str) -> bool:
        """Whether the model is loaded, as its files are now."""
        return self._models.peek((self._identity(checkpoint),)) is not None

    def has_trace(self, checkpoint: str, token_ids: tuple[int, ...], edits: tuple[Intervention, ...] = ()) -> bool:
        """Whether a run is captured."""
        return self._traces.peek((self._identity(checkpoint), token_ids, edits)) is not None

    def has_room(self, size: int) -> bool:
        """Whether so many bytes of models more would have none let go."""
        return self._models.total + size <= self._models.limit

    def memory(self) -> dict[str, int | dict[str, int]]:
        """Bytes that are kept now, and how many may be: memory that two things share counts once.

        Keys: `models` (by the names that they are asked by), `models_bytes`, `models_limit`; `traces`, how many,
        `traces_bytes`, what they keep themselves, `traces_limit`; `looked_at_bytes`, what was worked out of those that
        keep little, `looked_at_limit`; `results_bytes`, of jobs, `results_limit`.
        """
        models = {identity_of(lm)[0]: bytes_of(lm) for lm, _tokenizer in self._models.values()}
        traces = self._traces.values()
        return {
            "models": models,
            "models_bytes": sum(models.values()),
            "models_limit": self._models.limit,
            "traces": len(traces),
            "traces_bytes": bytes_of_arrays(value for trace in traces for value in trace.kept.values()),
            "traces_limit": self._traces.limit,
            "looked_at_bytes": looked_at_bytes(),
            "looked_at_limit": MOST_BYTES + MOST_BYTES_OF_BLOCKS,
            "results_bytes": jobs.RESULTS.total,
            "results_limit": jobs.RESULTS.limit,
        }

    def _offered(self, lm: TransformerLM) -> Offer:
        """Also how the model came about, and its training's others; without keeping the library, which keeps it."""
        checkpoint, *_rest = identity_of(lm)
        folder = checkpoint_folder(self.offered.place(checkpoint))
        training = training_of(checkpoint, self.checkpoints, folder)
        held = WeakMethod(self.held)

        def read(*question: Any) -> tuple[TransformerLM, Trace]:
            if (ask := held()) is None:
                raise ReferenceError("the library that this model came from is gone, and with it its training's others")
            return ask(*question)

        return replace(offered(lm), training=training, diagnosis=load_report(folder), read=read)

    def held(
        self, checkpoint: str, token_ids: tuple[int, ...], edits: tuple[Intervention, ...] = ()
    ) -> tuple[TransformerLM, Trace]:
        """A trace with its model, to be held as long as the trace is asked for weights.

        Errors are those of `model` and `capture`.
        """
        lm, tokenizer = self.model(checkpoint)
        return lm, self.trace_of(lm, tokenizer, token_ids, edits)

    def trace(self, checkpoint: str, token_ids: tuple[int, ...], edits: tuple[Intervention, ...] = ()) -> Trace:
        """The captured run of a checkpoint over tokens, with edits also that without, as its `baseline`.

        Errors are those of `model` and `capture`.
        """
        return self.held(checkpoint, token_ids, edits)[1]

    def trace_of(
        self, lm: TransformerLM, tokenizer: Tokenizer, token_ids: tuple[int, ...], edits: tuple[Intervention, ...] = ()
    ) -> Trace:
        """The same of a model that this library gave."""
        identity = self.identity(lm)

        def run() -> Trace:
            go_on(tokens=len(token_ids))
            changes = self.ready(lm, tokenizer, token_ids, edits)
            with self._capturing:
                trace = lent_gpu.captured(lm, token_ids, changes, tokenizer, self.most_bytes_of_a_trace)
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


def bytes_of(lm: TransformerLM) -> int:
    """Of a model's weights and tables; memory that two of them share counts once, and what is on a disk not at all."""
    tensors = [tensor for tensor in (*lm.parameters(), *lm.buffers()) if not tensor.is_meta]
    tensors += lm.offloaded.in_memory.values() if lm.offloaded else ()
    return sum({tensor.data_ptr(): tensor.nbytes for tensor in tensors}.values())


def pick_device() -> str:
    if lent_gpu.IS_LENT:
        return "cpu"
    if torch.cuda.is_available():
        return "cuda"
    return "mps" if torch.backends.mps.is_available() else "cpu"
