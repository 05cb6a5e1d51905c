"""The trace of one run: its captured values, its logits, and values that are computed on access."""

import difflib
import itertools
import math
import re
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property, wraps
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

import numpy as np

from explorer.interventions import DirectionSpec, Intervention, Prompts
from explorer.state.generation_settings import GenerationSettings
from explorer.tracing.attribution import (
    STEPS,
    ablate,
    estimate_macs,
    num_ablation_runs,
    num_job_units,
    token_contributions,
)
from explorer.tracing.diagnosis_report import DiagnosisReport
from explorer.tracing.forward_hooks import (
    cached_logit_and_log_probability,
    continue_tokens,
    mean_stream,
    recompute_block,
    recompute_logits,
)
from explorer.tracing.jobs import MAX_CLICK_MACS, Job, get_or_run
from explorer.tracing.lru_cache import LRUCache
from explorer.tracing.model_registry import get_model
from explorer.tracing.training_history import TrainingHistory
from explorer.tracing.weight_matrices import Matrix, direction_unit_vector
from model.config import ModelConfig, num_parameters
from model.tokenizer import MergeRules

CHUNK_BYTES = 16 << 20  # of logits read at a time
LIKELIEST = 3


@dataclass(frozen=True)
class LogitSummary:
    """Summary of T next-token distributions, in float64 and token ids.

    Attributes:
        log_sum_exp: (T,) ln Σ e^logits, so that ln p = logit - log_sum_exp.
        entropy: (T,) -Σ p log₂ p, bits.
        likeliest: (T, 3) ids, likeliest first; of equal ones the lower id.
        likeliest_logits: (T, 3), theirs.
        next_logit: (T - 1,) of the token that comes next.
        next_rank: (T - 1,) its rank, 1 + the number of likelier tokens.
    """

    log_sum_exp: np.ndarray
    entropy: np.ndarray
    likeliest: np.ndarray
    likeliest_logits: np.ndarray
    next_logit: np.ndarray
    next_rank: np.ndarray

    @property
    def nbytes(self) -> int:
        """Memory of all arrays in bytes."""
        return sum(values.nbytes for values in vars(self).values())

    def first(self, length: int) -> "LogitSummary":
        """Return the summary of the first `length` positions."""
        of_next = {name: getattr(self, name)[: max(0, length - 1)] for name in ("next_logit", "next_rank")}
        return LogitSummary(**{name: values[:length] for name, values in vars(self).items()} | of_next)


class Logits:
    """The logits (T, V) after every token of a run, read some positions at a time.

    Args:
        token_ids: the T tokens.
        vocab_size: V.
        rows: (start, stop) -> (stop - start, V) in float32, the logits after the positions from `start` on.
        row: position -> (V,), likewise.
        cached_summary: of the first positions, which `summary` does not read again, except for the last if a token
            follows it now.
    """

    def __init__(
        self,
        token_ids: Sequence[int],
        vocab_size: int,
        rows: Callable[[int, int], np.ndarray],
        row: Callable[[int], np.ndarray],
        cached_summary: LogitSummary | None = None,
    ):
        self.shape = len(token_ids), vocab_size
        self._cached_summary = cached_summary
        self.rows, self._row, self._token_ids = rows, row, np.array(token_ids)
        self._sorted: tuple[int | None, np.ndarray] = (
            None,
            np.empty(0, int),
        )  # token ids by logit at the last position of `top`

    def row(self, position: int) -> np.ndarray:
        """Return the logits after a position, (V,), read-only.

        Raises:
            IndexError: there is no such position.
        """
        length = self.shape[0]
        if not -length <= position < length:
            raise IndexError(f"no position {position} among {length}")
        return self._row(int(position) % length)

    def token_logits(self, token_ids: Sequence[int] | int, positions: Sequence[int] | int) -> np.ndarray:
        """Return the logits of tokens, each after the position in `positions` that it is broadcast with."""
        ids, position_array = np.broadcast_arrays(token_ids, positions)
        logits = [
            self.row(position)[token_id] for token_id, position in zip(ids.ravel(), position_array.ravel(), strict=True)
        ]
        return np.array(logits, np.float32).reshape(ids.shape)

    def top(self, count: int, position: int) -> np.ndarray:
        """Return the ids of the likeliest tokens after a position, likeliest first.

        The array is read-only. Of equal logits the lower id comes first.
        """
        sorted_position, order = self._sorted
        if sorted_position != position:
            sorted_position, order = self._sorted = position, np.argsort(-self.row(position), kind="stable")
        return order[:count]

    def rank(self, token_id: int, position: int) -> int:
        """Return a token's rank after a position: 1 for the likeliest; of equal ones the lower id comes first."""
        logits = self.row(position)
        return int((logits > logits[token_id]).sum() + (logits[:token_id] == logits[token_id]).sum()) + 1

    def chunks(self, first: int = 0) -> Iterator[tuple[slice, np.ndarray]]:
        """Yield ranges of positions from `first` on, with their logits (n, V)."""
        length, vocab_size = self.shape
        step = max(1, CHUNK_BYTES // (4 * vocab_size))
        for start in range(first, length, step):
            stop = min(start + step, length)
            yield slice(start, stop), self.rows(start, stop)

    def to_array(self) -> np.ndarray:
        """Return all logits as one read-only array, (T, V)."""
        array = np.empty(self.shape, np.float32)
        for positions, logits in self.chunks():
            array[positions] = logits
        array.flags.writeable = False
        return array

    @property
    def log_sum_exp(self) -> np.ndarray:
        """ln Σ e^logits at every position, (T,)."""
        return self.summary.log_sum_exp

    @property
    def entropy(self) -> np.ndarray:
        """Entropy −Σ p log₂ p at every position, (T,), in bits."""
        return self.summary.entropy

    @cached_property
    def summary(self) -> LogitSummary:
        """Summary of the logits at every position, computed in one pass over them."""
        if self._cached_summary and len(self._cached_summary.entropy) == self.shape[0]:
            return self._cached_summary
        next_ids = np.append(self._token_ids[1:], 0)  # the last position has no next token: its entry is dropped below
        num_cached = len(self._cached_summary.next_logit) if self._cached_summary else 0
        summaries = [_summarise(logits, next_ids[positions]) for positions, logits in self.chunks(num_cached)]
        if num_cached:
            summaries.insert(0, LogitSummary(*(values[:num_cached] for values in vars(self._cached_summary).values())))
        joined = (np.concatenate(values) for values in zip(*(vars(part).values() for part in summaries), strict=True))
        return LogitSummary(*joined).first(self.shape[0])


def summarise_logits(logits: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return `log_sum_exp`, `entropy`, `likeliest` and `likeliest_logits` of logits (n, V), as in `LogitSummary`."""
    largest = logits.max(-1, keepdims=True)
    shifted = logits - largest
    exps = np.exp(shifted)
    sums = exps.sum(-1, dtype=np.float64)
    bits = (np.log(sums) - np.einsum("tv,tv->t", exps, shifted) / sums) / np.log(2)
    likeliest = np.empty((len(logits), min(LIKELIEST, logits.shape[1])), int)
    for rank in range(likeliest.shape[1]):  # some times the largest is faster than to sort
        top = shifted.argmax(-1)[:, None]
        likeliest[:, rank] = top[:, 0]
        np.put_along_axis(shifted, top, -np.inf, axis=-1)
    likeliest_logits = np.take_along_axis(logits, likeliest, -1).astype(float)
    return np.log(sums) + largest[:, 0], bits.clip(0), likeliest, likeliest_logits


def _summarise(logits: np.ndarray, next_ids: np.ndarray) -> LogitSummary:
    """Summarise logits (n, V), given the next token at each position, (n,)."""
    actual = np.take_along_axis(logits, next_ids[:, None], -1)
    ranks = (logits > actual).sum(-1) + 1.0
    return LogitSummary(*summarise_logits(logits), next_logit=actual[:, 0].astype(float), next_rank=ranks)


def logits_from_array(token_ids: Sequence[int], logits: np.ndarray) -> Logits:
    """Return logits (T, V) that are in memory as `Logits`."""
    return Logits(token_ids, logits.shape[1], lambda start, stop: logits[start:stop], logits.__getitem__)


class LazyLayerStack(Sequence):
    """Lazy sequence of one value per layer; converts to an array (L, …).

    Args:
        count: L.
        get: layer -> its array, not cached.
        shape: of one layer's array.
    """

    def __init__(self, count: int, get: Callable[[int], np.ndarray], shape: tuple[int, ...]):
        self.shape, self._get = (count, *shape), get

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, layer: int) -> np.ndarray:
        if not 0 <= layer < len(self):
            raise IndexError(f"no layer {layer} among {len(self)}")
        return self._get(layer)

    def __array__(self, dtype=None, copy=None) -> np.ndarray:
        return np.stack(list(self)).astype(dtype or np.float32, copy=False)


BYTES_PER_NUMBER = 4  # float32
MAX_VALUE_BYTES = 128 << 20  # of all cached values of all passes
MAX_BLOCK_BYTES = 64 << 20  # of recomputed blocks; the last one stays however large it is


def named_arrays_num_bytes(values: Mapping[str, np.ndarray]) -> int:
    """Return the memory of named arrays in bytes, counting shared memory once."""
    return arrays_num_bytes(values.values())


def arrays_num_bytes(arrays: Iterable[np.ndarray]) -> int:
    """Return the memory of some arrays in bytes, counting shared memory once."""
    return sum({array.ctypes.data: array.nbytes for array in arrays}.values())


_VALUE_CACHE = LRUCache(MAX_VALUE_BYTES, lambda value: value.nbytes)
_BLOCK_CACHE = LRUCache(MAX_BLOCK_BYTES, named_arrays_num_bytes)
_CACHE_IDS = itertools.count()


def lazy_cache_num_bytes() -> int:
    """Return the memory of all cached values of all passes in bytes."""
    block_values = (value for block in _BLOCK_CACHE.values() for value in block.values())
    return arrays_num_bytes([*_VALUE_CACHE.values(), *block_values])


def _evict(cache_id: int):
    """Drop the cached values of a pass that no longer exists."""
    for cache in (_VALUE_CACHE, _BLOCK_CACHE):
        cache.drop(lambda key: key[0] == cache_id)


@dataclass(frozen=True, eq=False)
class LazyActivations(Mapping):
    """Name -> value, as read-only float32 arrays without a batch axis.

    A value inside a block is recomputed by this block alone, from the stored input of the block: by the same
    formulas and from the same numbers as in a full capture. Only in float32, where that is accurate enough, fused
    kernels compute the attention in the pass itself, and in the recomputation if scores and patterns are too large
    to be cached. The logits are computed from the input of the unembedding, and never stored all at once.

    Every access except to stored values raises ModelUnloadedError once the model is unloaded.

    Attributes:
        stored: inputs and outputs of the blocks, and values outside blocks except the logits.
        shapes: of all values, by name, in the order in which they are computed.
        model: identity of the model that ran.
        token_ids: its input.
        edits: interventions of the pass, with the values of their patches.
        holds: the model, if it is to be kept alive with this object; None if the caller does that.
        summary: of the logits of the first positions, if they were computed before.
    """

    stored: Mapping[str, np.ndarray]
    shapes: Mapping[str, tuple[int, ...]]
    model: Hashable
    token_ids: tuple[int, ...]
    edits: tuple[Intervention, ...] = ()
    holds: object = None
    summary: LogitSummary | None = None
    _cache_id: int = field(default_factory=_CACHE_IDS.__next__, repr=False)  # first part of the keys of cached values

    def __post_init__(self):
        weakref.finalize(self, _evict, self._cache_id).atexit = False

    def __reduce__(self):
        return LazyActivations, (self.stored, self.shapes, self.model, self.token_ids, self.edits)

    def __getitem__(self, name: str) -> np.ndarray:
        if name in self.stored:
            return self.stored[name]
        if name not in self.shapes:
            raise KeyError(name)
        if name == "logits":
            return self.logits.to_array()
        return _VALUE_CACHE.get((self._cache_id, name), lambda: self._block_value(name))

    def __contains__(self, name: object) -> bool:
        return name in self.shapes

    def __iter__(self) -> Iterator[str]:
        return iter(self.shapes)

    def __len__(self) -> int:
        return len(self.shapes)

    @property
    def logits(self) -> Logits:
        """The logits, computed some positions at a time on access."""
        vocab_size = self.shapes["logits"][-1]
        return Logits(self.token_ids, vocab_size, self._logit_rows, self._logit_row, self.summary)

    def _logit_rows(self, start: int, stop: int) -> np.ndarray:
        lm = get_model(self.model, "logits")[0]
        return recompute_logits(lm, self.token_ids, self.edits, self.stored["final_norm"][start:stop], start)

    def _logit_row(self, position: int) -> np.ndarray:
        rows = _VALUE_CACHE.get((self._cache_id, "logits", position), lambda: self._logit_rows(position, position + 1))
        return rows[0]

    def _block_value(self, name: str) -> np.ndarray:
        """Return a value inside a block.

        The last recomputed blocks stay cached whole, for callers that read several values of a block. If scores and
        patterns are too large for that, each of them is computed by itself, and the other values without keeping
        them.
        """
        block = ".".join(name.split(".")[:2])
        taps = [tap for tap in self.shapes if tap.startswith(f"{block}.") and tap not in self.stored]
        large = [tap for tap in taps if tap.endswith(("attn.scores", "attn.pattern"))]
        if BYTES_PER_NUMBER * sum(math.prod(self.shapes[tap]) for tap in large) > MAX_BLOCK_BYTES:
            taps = [name] if name in large else [tap for tap in taps if tap not in large]
        return _BLOCK_CACHE.get((self._cache_id, taps[0], len(taps)), lambda: self._compute_block(name, taps))[name]

    def _compute_block(self, name: str, names: list[str]) -> Mapping[str, np.ndarray]:
        """Recompute some values of the block that has the value `name`."""
        lm = get_model(self.model, name)[0]
        return recompute_block(lm, self.token_ids, self.edits, self.stored, int(name.split(".")[1]), names)


@dataclass(frozen=True, eq=False)
class Trace:
    """The captured values of one forward pass, by name, without the model that ran: it can be pickled.

    Each trace equals only itself, so that results can be cached by trace.

    Attributes:
        config: of the model that ran.
        token_ids: the T input tokens.
        vocabulary: the text of every token id, as displayed.
        values: name -> float32 array without a batch axis, in the order in which they were computed; those inside
            blocks of large runs are computed on access, and need the model then.
        weights: name -> weight of the model that ran, read-only, while that lives: a float32 array, or a
            `StoredMatrix`.
        token_bytes: the bytes of every token id, None for a special token; empty if the tokenizer is unknown.
        merge_rules: how the tokenizer builds tokens; None if it has no merges, or is unknown.
        edits: interventions of the run.
        baseline: the run of the same tokens without interventions; None if the run has none.
        model: identity of the model that ran (see `explorer.tracing.model_registry`); None if none did.
        dtype: the data type of the model's computation, which determines rounding.
        training: history of the model's training; None if unknown.
        diagnosis: differences between the owner's own module and the model made of it; None if there is no such
            module.
    """

    config: ModelConfig
    token_ids: tuple[int, ...]
    vocabulary: Sequence[str]
    values: Mapping[str, np.ndarray]
    weights: Mapping[str, Matrix] = field(default_factory=dict)
    token_bytes: Sequence[bytes | None] = ()
    merge_rules: MergeRules | None = None
    edits: tuple[Intervention, ...] = ()
    baseline: "Trace | None" = None
    model: Hashable = None
    dtype: str = "float32"
    training: TrainingHistory | None = None
    diagnosis: DiagnosisReport | None = None

    def __reduce__(self) -> tuple:
        return type(self), tuple(getattr(self, item.name) for item in fields(self))  # without what was computed of them

    def __len__(self) -> int:
        return len(self.token_ids)

    def __contains__(self, name: str) -> bool:
        return name in self.values

    def __getitem__(self, name: str) -> np.ndarray:
        """Return the value captured at a tap.

        Raises:
            KeyError: nothing was captured under that name; the message has the nearest names.
        """
        if name not in self.values:
            near = difflib.get_close_matches(name, self.values, n=3, cutoff=0.4)
            raise KeyError(f"nothing captured as {name!r}; the nearest names are {', '.join(near) or 'none'}")
        return self.values[name]

    def _ipython_key_completions_(self) -> list[str]:
        """Return the names that a notebook offers after `trace["` and Tab."""
        return list(self.values)

    def get_slice(self, name: str, *index: int | slice | np.ndarray) -> np.ndarray:
        """Return `trace[name][index]`; of lazy logits only those of the indexed positions are computed."""
        if name == "logits" and self.is_lazy and index:
            if isinstance(index[0], (int, np.integer)):
                return self.logits.row(index[0])[index[1:]]
            if isinstance(index[0], slice) and index[0].step in (None, 1):
                start, stop, _step = index[0].indices(len(self))
                return self.logits.rows(start, stop)[(slice(None), *index[1:])]
        return self[name][index]

    @cached_property
    def logits(self) -> Logits:
        """The logits after every token, read some positions at a time."""
        return self.values.logits if self.is_lazy else logits_from_array(self.token_ids, self["logits"])

    def shape(self, name: str) -> tuple[int, ...]:
        """Return the shape of a captured value without computing it."""
        return self.values.shapes[name] if self.is_lazy else self.values[name].shape

    def head_value(self, name: str, head: int) -> np.ndarray:
        """Return the part of a value that belongs to head h of H: (H, T, …) -> (T, …).

        For keys and values shared in groups, (G, T, d), that of h's group: ⌊h · G / H⌋.
        """
        value = self[name]
        return value[head * len(value) // self.config.num_heads]

    def stack(self, pattern: str) -> np.ndarray:
        """Return the values of all layers: `stack("blocks.*.attn.pattern")` is (L, H, T, T).

        Raises:
            KeyError: a layer has no such value.
        """
        return np.stack([self[pattern.replace("*", str(layer))] for layer in range(self.config.num_layers)])

    @property
    def has_weights(self) -> bool:
        """True if weights are available: not for a module with another architecture."""
        return self.model is not None or bool(self.weights)

    def layers(self, pattern: str) -> LazyLayerStack:
        """Return a value of all layers as a lazy stack, for runs whose layers together may not fit into memory."""
        names = [pattern.replace("*", str(layer)) for layer in range(self.config.num_layers)]
        if self.is_lazy:
            self[names[0]]  # raises if the values are not available
        return LazyLayerStack(len(names), lambda layer: self[names[layer]], self.shape(names[0]))

    def has_tap(self, pattern: str) -> bool:
        """Return True if a value was captured; * stands for any layer; for a weight, if weights are available."""
        if pattern.endswith(".weight"):
            return self.has_weights
        return pattern in self.values or pattern in self._tap_patterns

    @cached_property
    def _tap_patterns(self) -> frozenset[str]:
        """Names of the values with * for the layer."""
        return frozenset(re.sub(r"\.\d+\.", ".*.", name) for name in self.values)

    def join_tokens(self, token_ids: Iterable[int]) -> str:
        """Return the concatenated texts of tokens."""
        return "".join(self.vocabulary[token_id] for token_id in token_ids)

    def save(self, path: str | Path) -> Path:
        """Write the run to a safetensors file, without the model's weights.

        The file has the stored values of the run and its baseline by name, and in the metadata its tokens, the
        vocabulary, the model's config and the interventions.

        Raises:
            UserError: it has patches from another run.
            OSError: it cannot be written.
        """
        from explorer.tracing.run_files import save_trace

        return save_trace(self, path)

    @staticmethod
    def load(path: str | Path, lm: Any = None) -> "Trace":
        """Read a saved run.

        Values that were not stored, and weights, come from the model: from the one that ran, if it lives in this
        process, or from `lm`, which the caller keeps alive; without it ModelUnloadedError names the missing value.

        Args:
            lm: a model with the weights of the one that ran.

        Raises:
            UserError: the file is missing, damaged or no saved run, or `lm` has other weights.
        """
        from explorer.tracing.run_files import load_trace

        return load_trace(path, lm)

    @property
    def tokens(self) -> tuple[str, ...]:
        """Texts of the input tokens."""
        return tuple(self.vocabulary[token_id] for token_id in self.token_ids)

    @property
    def num_bytes(self) -> int:
        """Memory of the trace's stored values in bytes, without the baseline's, counting shared memory once."""
        return named_arrays_num_bytes(self.stored_values)

    @property
    def stored_values(self) -> Mapping[str, np.ndarray]:
        """Values that are stored, and not computed on access."""
        return self.values.stored if self.is_lazy else self.values

    @property
    def is_lazy(self) -> bool:
        """True if values inside blocks are computed on access (see `explorer.tracing.trace`)."""
        return isinstance(self.values, LazyActivations)

    def ablate(
        self,
        position: int,
        token_id: int,
        interventions: tuple[Intervention, ...] = (),
        max_wait_macs: float = MAX_CLICK_MACS,
        operation: str = "zero",
    ) -> np.ndarray:
        """Compute a token's log-probability after a position with each component ablated.

        See `explorer.tracing.attribution`.

        Args:
            interventions: of all these runs besides the trace's own.
            max_wait_macs: largest cost that a page request waits for, in multiply-accumulates.
            operation: "zero" or "mean".

        Raises:
            ValueError: no model ran.
            ModelUnloadedError: the model has been unloaded.
            ResultNotReadyError: a page request does not wait for it, and it is not cached.
        """
        if self.model is None:
            raise ValueError("an ablation runs the model again, and this trace knows none: make it with capture()")
        lm = get_model(self.model)[0]
        args = self.token_ids, (*self.edits, *interventions), position, token_id, operation
        macs = estimate_macs(lm, len(self) if operation == "mean" else position + 1)
        job = Job(("ablation", self.model, *args), lambda: ablate(lm, *args), num_ablation_runs(lm), macs)
        return get_or_run(job, max_wait_macs)

    def logit_and_log_probability(
        self,
        position: int,
        token_id: int,
        interventions: tuple[Intervention, ...] = (),
        token_ids: tuple[int, ...] | None = None,
    ) -> np.ndarray:
        """Compute logit and ln p of a token after a position, (2,), in a run with these interventions.

        They replace the trace's own interventions.

        Args:
            token_ids: of that run; None for the trace's.

        Raises:
            ValueError: no model ran.
            ModelUnloadedError: the model has been unloaded.
        """
        if self.model is None:
            raise ValueError("what another run gives its model must compute, and this trace knows none: use capture()")
        return cached_logit_and_log_probability(
            self.model, token_ids or self.token_ids, interventions, position, token_id
        )

    def token_contributions(self, position: int, token_id: int, contrast_id: int | None) -> Mapping[str, np.ndarray]:
        """Compute the contribution of each token (see `explorer.tracing.attribution.token_contributions`).

        Raises:
            ValueError: no model ran.
            ModelUnloadedError: the model has been unloaded.
            ResultNotReadyError: a page request does not wait for it, and it is not cached.
        """
        if self.model is None:
            raise ValueError("gradients run the model again, and this trace knows none: make it with capture()")
        lm = get_model(self.model)[0]
        args = self.token_ids, self.edits, position, token_id, contrast_id
        num_units = num_job_units(position)
        macs = (num_units + 2 * STEPS) * (position + 1) * num_parameters(lm.config)  # a gradient costs 2 passes more
        key = "token_contributions", self.model, *args
        return get_or_run(Job(key, lambda: token_contributions(lm, *args), num_units, macs))

    def direction(self, spec: DirectionSpec) -> np.ndarray:
        """Return a direction of the model as a unit vector, (D,) float64; raises like `direction_unit_vector`."""

        def mean_stream_of_model(layer: int, prompts: Prompts) -> np.ndarray:
            return mean_stream(get_model(self.model)[0], layer, prompts)

        return direction_unit_vector(self.config, lambda name: self.weights[name], spec, mean_stream_of_model)

    def continue_tokens(self, count: int, settings: GenerationSettings) -> tuple[int, ...]:
        """Return the ids of the tokens with which the model continues this run."""
        return continue_tokens(get_model(self.model)[0], self.token_ids, self.edits, count, settings)

    def at_training_steps(self) -> dict[int, tuple[Any, "Trace"]]:
        """Return this run, with the same interventions, by the model at every saved step of its training.

        Step -> the model, to be kept alive while its trace reads weights, and the trace; for the trace's own step,
        the trace itself. Empty if the training has no saved steps.

        Raises:
            ModelUnloadedError: the trace's model has been unloaded.
            CheckpointError: the checkpoint of another step cannot be loaded.
            BudgetExceededError: it is more than one response may compute.
        """
        if self.training is None or not self.training.snapshots:
            return {}
        lm, facts = get_model(self.model)
        return {
            step: (lm, self) if name == self.training.checkpoint else facts.read(name, self.token_ids, self.edits)
            for step, name in self.training.snapshots.items()
        }


MAX_RESULTS_PER_TRACE = 8  # each has a few numbers per component

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


def cache_per_trace(
    function: Callable[Concatenate[Trace, Arguments], Result],
) -> Callable[Concatenate[Trace, Arguments], Result]:
    """Cache the latest results of a function of a trace and hashable arguments while the trace lives.

    Two threads that call at the same time may both compute the result.
    """
    results: weakref.WeakKeyDictionary[Trace, OrderedDict] = weakref.WeakKeyDictionary()
    lock = threading.Lock()

    @wraps(function)
    def wrapper(trace: Trace, *args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        key = args, tuple(sorted(kwargs.items()))
        with lock:
            trace_results = results.setdefault(trace, OrderedDict())
            if key in trace_results:
                trace_results.move_to_end(key)
                return trace_results[key]
        result = function(trace, *args, **kwargs)
        with lock:
            trace_results[key] = result
            while len(trace_results) > MAX_RESULTS_PER_TRACE:
                trace_results.popitem(last=False)
        return result

    return wrapper
