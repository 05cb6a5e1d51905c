"""Cache of models and traces within memory limits, and models opened as jobs: of the Hub, or in advance."""

import importlib.util
import logging
import threading
import time
from collections.abc import Callable, Collection, Hashable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from weakref import WeakMethod

import numpy as np
import torch

from explorer.errors import UserError
from explorer.interventions import CrossRunIntervention, Intervention
from explorer.tracing import jobs, zero_gpu
from explorer.tracing.comparison import resolve_patches
from explorer.tracing.diagnosis_report import load_diagnosis_report
from explorer.tracing.jobs import RESULTS, Job, JobSteps, check_budget, compute_once
from explorer.tracing.lru_cache import LRUCache
from explorer.tracing.model_catalog import (
    MEMORY_FACTOR,
    ModelCatalog,
    available_bytes,
    require_memory,
    weight_num_bytes,
)
from explorer.tracing.model_registry import ModelFacts, get_identity, register_model, register_model_facts
from explorer.tracing.numpy_arrays import StoredWeights
from explorer.tracing.token_ids import retokenize
from explorer.tracing.trace import MAX_BLOCK_BYTES, MAX_VALUE_BYTES, Trace, arrays_num_bytes, lazy_cache_num_bytes
from explorer.tracing.training_history import checkpoints_of_training, load_training_history, model_name
from explorer.translations import _
from model.checkpoint import (
    CheckpointError,
    checkpoint_file_stats,
    checkpoint_folder,
    is_gguf,
    is_remote_checkpoint,
    load_checkpoint,
)
from model.config import ModelConfig, num_parameters
from model.describe import Description, describe_model
from model.errors import ModelError
from model.pretrained.hub import HubFiles, cached_model, download_files, list_hub_files
from model.pretrained.reference_logits import LogitAgreement, compare_with_reference, has_reference_logits
from model.tokenizer import Tokenizer
from model.transformer_lm import TransformerLM
from model.weight_placement import Device, trim_heap

MAX_TRACE_CACHE_BYTES = 512 << 20
MAX_MODEL_CACHE_BYTES = 4 << 30
MAX_TRACE_BYTES = 192 << 20  # of one that keeps every value: half a thousand tokens of a model we ship
MAX_CONCURRENT_CAPTURES = 2  # each holds as much memory as what it captures, and its products already share all cores
TRIM_AFTER_BYTES = 256 << 20  # of captures; more often, captures would wait for pages that were just released
LOG = logging.getLogger(__name__)


class ModelLibrary:
    """Models and traces shared by all requests.

    Args:
        device: "cpu", "cuda", "mps", or "auto" for the first available of cuda, mps, cpu.
        max_model_cache_bytes: limit of the cached models; the least recently used goes first.
        max_trace_cache_bytes: limit of the cached traces; the least recently used goes first.
        max_trace_bytes: a trace with more has values that are computed on access (see `capture`).
        hub_names: models of the Hugging Face Hub that users may open.
        device_map, max_memory: for models on several devices, instead of `device` (see `load_checkpoint`).
        dtype: of the computation of external models, such as "float32"; None for the type of their weights.

    Attributes:
        catalog: the available models.
    """

    def __init__(
        self,
        device: str = "auto",
        max_model_cache_bytes: int = MAX_MODEL_CACHE_BYTES,
        max_trace_cache_bytes: int = MAX_TRACE_CACHE_BYTES,
        max_trace_bytes: int = MAX_TRACE_BYTES,
        hub_names: Collection[str] = (),
        device_map: str | None = None,
        max_memory: Mapping[Device, int | str] | None = None,
        dtype: str | None = None,
    ):
        self.catalog = ModelCatalog(hub_names)
        self.device = pick_device() if device == "auto" else device
        self.device_map, self.max_memory = device_map, max_memory
        self.dtype: torch.dtype | None = getattr(torch, dtype) if dtype else None
        self._models = LRUCache(max_model_cache_bytes, size=lambda model: model_num_bytes(model[0]))
        self._traces = LRUCache(max_trace_cache_bytes, size=lambda trace: trace.num_bytes)
        self.max_trace_bytes = max_trace_bytes
        self._capturing = threading.Semaphore(MAX_CONCURRENT_CAPTURES)
        self._captured, self._counting = 0, threading.Lock()

    @property
    def checkpoints(self) -> list[str]:
        """Names of all available models."""
        return self.catalog.names

    def model(self, checkpoint: str) -> tuple[TransformerLM, Tokenizer]:
        """Return the model and the tokenizer of a checkpoint, as its files are now.

        Raises:
            CheckpointError: there is none of that name (see `ModelCatalog.locate`), or it cannot be loaded.
        """
        identity = self._identity(checkpoint)
        return self._models.get((identity,), lambda: self._load(identity))

    def _identity(self, checkpoint: str) -> tuple:
        def read() -> tuple:
            return checkpoint, checkpoint_file_stats(self.catalog.locate(checkpoint)), self.device

        return compute_once((self, checkpoint), read)

    def _load(self, identity: tuple) -> tuple[TransformerLM, Tokenizer]:
        (checkpoint, version, device), began = identity, time.monotonic()
        path = self.catalog.locate(checkpoint)
        dtype = self.dtype if self.catalog.is_external(checkpoint) else None
        sharding = {"device_map": self.device_map, "max_memory": self.max_memory}
        if self.catalog.is_external(checkpoint) and not self.device_map:
            required, left = weight_num_bytes(path, dtype), available_bytes(self.device)
            if left is not None and is_gguf(Path(path)) and device == "cpu":  # larger ones stay in the file
                sharding["max_memory"] = {"cpu": int(left / MEMORY_FACTOR)}
            else:
                require_memory(checkpoint, required, self.device)
            LOG.info("loading %s: its weights take up to %.0f MB of memory", checkpoint, required / 1e6)
        try:
            tokenizer = self.catalog.tokenizers.get(checkpoint)
            lm, tokenizer = load_checkpoint(path, device, dtype, tokenizer=tokenizer, **sharding)
        finally:
            if checkpoint_file_stats(path) != version:
                message = _("checkpoint {name!r} is being written: ask again in a moment", name=checkpoint)
                raise CheckpointError(message) from None

        def is_outdated(key: tuple) -> bool:
            return key[0][0] == checkpoint and key[0] != identity

        LOG.debug("loaded %s on %s in %.1f s", checkpoint, device, time.monotonic() - began)
        self._models.drop(is_outdated)
        self._traces.drop(is_outdated)
        return register_model(lm, identity), tokenizer

    def identity(self, lm: TransformerLM) -> Hashable:
        """Register the facts of a model of this library and return its identity.

        See `explorer.tracing.model_registry`.
        """
        return register_model_facts(lm, self._make_facts)

    def has(self, checkpoint: str) -> bool:
        """Return True if the model is loaded, as its files are now."""
        return self._models.peek((self._identity(checkpoint),)) is not None

    def has_trace(
        self, checkpoint: str, token_ids: tuple[int, ...], interventions: tuple[Intervention, ...] = ()
    ) -> bool:
        """Return True if the run's trace is cached."""
        return self._traces.peek((self._identity(checkpoint), token_ids, interventions)) is not None

    def fits_without_eviction(self, size: int) -> bool:
        """Return True if models of this many more bytes would evict none."""
        return self._models.total + size <= self._models.limit

    def memory(self) -> dict[str, int | dict[str, int]]:
        """Return the bytes in use and their limits, counting shared memory once.

        Keys: `models` (bytes by name), `models_bytes`, `models_limit`; `traces` (their number), `traces_bytes`
        (their stored values), `traces_limit`; `looked_at_bytes` (cached values of lazy traces), `looked_at_limit`;
        `results_bytes` (of jobs), `results_limit`.
        """
        models = {get_identity(lm)[0]: model_num_bytes(lm) for lm, _tokenizer in self._models.values()}
        traces = self._traces.values()
        return {
            "models": models,
            "models_bytes": sum(models.values()),
            "models_limit": self._models.limit,
            "traces": len(traces),
            "traces_bytes": arrays_num_bytes(value for trace in traces for value in trace.stored_values.values()),
            "traces_limit": self._traces.limit,
            "looked_at_bytes": lazy_cache_num_bytes(),
            "looked_at_limit": MAX_VALUE_BYTES + MAX_BLOCK_BYTES,
            "results_bytes": jobs.RESULTS.total,
            "results_limit": jobs.RESULTS.limit,
        }

    def _make_facts(self, lm: TransformerLM) -> ModelFacts:
        """Return the weights of a model, with its training history, its diagnosis and its other checkpoints.

        They refer to the library weakly, since the library holds them.
        """
        checkpoint, *_rest = get_identity(lm)
        folder = checkpoint_folder(self.catalog.locate(checkpoint))
        training = load_training_history(checkpoint, self.checkpoints, folder)
        method_ref = WeakMethod(self.model_and_trace)

        def read(*args: Any) -> tuple[TransformerLM, Trace]:
            if (method := method_ref()) is None:
                raise ReferenceError("the library that this model came from is gone, and with it its training's others")
            return method(*args)

        return ModelFacts(StoredWeights(lm), training, load_diagnosis_report(folder), read)

    def model_and_trace(
        self, checkpoint: str, token_ids: tuple[int, ...], interventions: tuple[Intervention, ...] = ()
    ) -> tuple[TransformerLM, Trace]:
        """Return a trace with its model, to be kept alive while the trace reads weights.

        Raises as `model` and `capture` do.
        """
        lm, tokenizer = self.model(checkpoint)
        return lm, self.trace_model(lm, tokenizer, token_ids, interventions)

    def trace(self, checkpoint: str, token_ids: tuple[int, ...], interventions: tuple[Intervention, ...] = ()) -> Trace:
        """Return the trace of a checkpoint's run; with interventions its `baseline` is the run without them.

        Raises as `model` and `capture` do.
        """
        return self.model_and_trace(checkpoint, token_ids, interventions)[1]

    def trace_model(
        self,
        lm: TransformerLM,
        tokenizer: Tokenizer,
        token_ids: tuple[int, ...],
        interventions: tuple[Intervention, ...] = (),
    ) -> Trace:
        """Return the trace of a run of a model that this library loaded."""
        identity = self.identity(lm)

        def run() -> Trace:
            check_budget(tokens=len(token_ids))
            resolved = self.resolve_patches(lm, tokenizer, token_ids, interventions)
            with self._capturing:
                trace = zero_gpu.capture_on_gpu(lm, token_ids, resolved, tokenizer, self.max_trace_bytes)
            self._count_captured(trace)
            return replace(trace, baseline=self.trace_model(lm, tokenizer, token_ids)) if interventions else trace

        trace = self._traces.get((identity, token_ids, interventions), run)
        if interventions:  # a baseline stays, and is counted, longer than what holds it
            self._traces.get((identity, token_ids, ()), lambda: trace.baseline)
        return trace

    def resolve_patches(
        self,
        lm: TransformerLM,
        tokenizer: Tokenizer,
        token_ids: tuple[int, ...],
        interventions: tuple[Intervention, ...],
    ) -> tuple[Intervention, ...]:
        """Return a run's interventions with the values of their patches (see `explorer.tracing.comparison`)."""

        def trace_source(patch: CrossRunIntervention) -> Trace:
            other, other_tokenizer = self.model(patch.source.checkpoint)
            ids = patch.source.prompt or patch.prompt  # one without a text of its own reads the same
            if not patch.source.prompt and other_tokenizer.vocabulary != tokenizer.vocabulary:
                ids = retokenize(ids, tokenizer, other_tokenizer)
            source_edits = tuple(intervention.for_prompt(ids) for intervention in patch.source.edits)
            return self.trace_model(other, other_tokenizer, ids, source_edits)

        return resolve_patches(interventions, lm.config, token_ids, tokenizer.vocabulary, trace_source)

    def _count_captured(self, trace: Trace):
        """Count the bytes of captured traces, and release freed memory to the system from time to time."""
        with self._counting:
            self._captured += trace.num_bytes
            if due := self._captured >= TRIM_AFTER_BYTES:
                self._captured = 0
        if due:
            trim_heap()


def model_num_bytes(lm: TransformerLM) -> int:
    """Return the memory of a model's weights and tables in bytes.

    Shared memory counts once, weights on disk do not count.
    """
    tensors = [tensor for tensor in (*lm.parameters(), *lm.buffers()) if not tensor.is_meta]
    tensors += lm.offloaded.in_memory.values() if lm.offloaded else ()
    return sum({tensor.data_ptr(): tensor.nbytes for tensor in tensors}.values())


def pick_device() -> str:
    """Return the device that models run on: "cuda", "mps" or "cpu"."""
    if zero_gpu.HAS_ZERO_GPU:
        return "cpu"
    if torch.cuda.is_available():
        return "cuda"
    return "mps" if torch.backends.mps.is_available() else "cpu"


POLL_INTERVAL_S = 0.05  # seconds between two looks at what another thread does
ProgressCallback = Callable[[int], None]


@dataclass(frozen=True)
class ModelRequirements:
    """Download and memory that opening a model needs.

    Attributes:
        checkpoint: name of the model once it is open.
        download: bytes to download.
        memory: bytes of the weights in memory, at most; 0 if unknown.
        left: free bytes; None if unknown.
        files: description of the model's files; None for one that is not on this machine.
    """

    checkpoint: str
    download: int
    memory: int
    left: int | None
    files: Description | None = None


class ModelOpener:
    """Opens the models that users name.

    Args:
        library: offers the models once they are open.
    """

    def __init__(self, library: ModelLibrary):
        self.library = library
        self._agreements: dict[tuple, LogitAgreement] = {}  # by a model's name and the version of its files

    def requirements(self, name: str) -> ModelRequirements:
        """Return the download and memory that opening a model needs.

        Args:
            name: on the hub; or a path, if users may open any.

        Raises:
            UserError: it may not be opened here.
            CheckpointError: the hub has no such model, or cannot be reached; a file is damaged or not supported; or the
                weights do not fit into memory.
        """
        device = self.library.device
        if hub_files := self._hub_files(name):
            memory = require_memory(name, hub_files.weight_bytes, device)
            return ModelRequirements(name, hub_files.num_bytes, *memory)
        checkpoint, path = self.library.catalog.name_and_path(name)
        path = path or cached_model(name)
        description = describe_model(path)
        if description.problem:
            raise CheckpointError("{why}", why=description.problem)
        memory = weight_num_bytes(path)
        if path.is_file() and is_gguf(path) and device == "cpu":  # what does not fit stays in the file
            return ModelRequirements(checkpoint, 0, memory, available_bytes(device), description)
        return ModelRequirements(checkpoint, 0, *require_memory(checkpoint, memory, device), description)

    def open_job(self, name: str) -> Job:
        """Return the job that downloads a model, if needed, and loads it; raises as `requirements` does."""
        is_path = self.requirements(name).files is not None and not is_remote_checkpoint(name)
        hub_files = self._hub_files(name)

        def work(on_progress: ProgressCallback):
            if hub_files:
                download_files(hub_files, on_progress)
            self.library.model(self.library.catalog.open(name) if is_path else name)

        key = "open", name
        if hub_files:  # an earlier download of it is gone, or there was none
            RESULTS.drop(lambda cached_key: cached_key == key)
        return Job(key, lambda: run_in_thread(work), units=hub_files.num_bytes if hub_files else 1, macs=0)

    def _hub_files(self, name: str) -> HubFiles | None:
        """Return the model's files on the hub; None if the model is on this machine."""
        if isinstance(name, str) and self.library.catalog.allows_paths and not is_remote_checkpoint(name):
            return None
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
            return None if cached_model(name) else list_hub_files(name)
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


class TrainingStepPrefetcher:
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


CORES = torch.get_num_threads()  # that PyTorch would take
FEW_PARAMETERS = 100_000_000  # a second core makes products of so few no faster


def set_num_threads(config: ModelConfig):
    """Set one thread per product for small models, else all cores, for threads that start from now on.

    If several requests compute at a time, each product's threads would wait for those of others. The number stays
    as it is:
    products round differently with another, and two equal runs would differ.
    """
    torch.set_num_threads(1 if num_parameters(config) < FEW_PARAMETERS else CORES)
