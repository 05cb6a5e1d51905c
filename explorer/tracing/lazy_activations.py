"""Activations computed on access, for passes whose values together would take too much memory."""

import itertools
import math
import weakref
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from explorer.state.interventions import Intervention
from explorer.tracing.logits import Logits, LogitSummary
from explorer.tracing.lru import LRUCache
from explorer.tracing.model_registry import get_model

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
        lm, services = get_model(self.model, "logits")
        return services.recompute_logits(lm, self.token_ids, self.edits, self.stored["final_norm"][start:stop], start)

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
        lm, services = get_model(self.model, name)
        return services.recompute_block(lm, self.token_ids, self.edits, self.stored, int(name.split(".")[1]), names)
