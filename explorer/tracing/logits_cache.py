"""Cache of logits for texts that grow token by token."""

import copy
from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np

from explorer.tracing.capture import module_outputs
from explorer.tracing.lazy_activations import LazyActivations
from explorer.tracing.library import Library
from explorer.tracing.logits import LogitSummary
from explorer.tracing.lru import LRUCache
from explorer.tracing.model_registry import Weights, get_identity
from explorer.tracing.request_budget import check_budget
from explorer.tracing.token_validation import check_tokens
from explorer.tracing.trace import Trace
from model.kv_cache import KVCache
from model.transformer_lm import TransformerLM

MAX_BYTES = 128 << 20


@dataclass(frozen=True)
class _CacheEntry:
    """The cached state of a text.

    Attributes:
        read: (T, D) input of the unembedding.
        cache: keys and values.
        summary: of the logits.
    """

    read: np.ndarray
    cache: KVCache
    summary: LogitSummary

    @property
    def nbytes(self) -> int:
        return self.read.nbytes + self.cache.entries.nbytes + self.summary.nbytes


class LogitsCache:
    """Traces with the logits alone, each continued from the cached state of its text.

    They serve generation at many tokens per second, where capturing all values again would take too long. The cache
    has the input of the unembedding and a summary of the logits. A text is cached once, at its greatest length:
    prefixes of it are part of it, since no token sees later ones.
    """

    def __init__(self, library: Library):
        self.library = library
        self._cache = LRUCache(MAX_BYTES, size=lambda entry: entry.nbytes)

    def trace(self, checkpoint: str, token_ids: tuple[int, ...]) -> Trace:
        """Return a trace with the logits after every token; it holds the model, and should not be kept.

        Raises as `Library.trace` does.
        """
        lm, tokenizer = self.library.model(checkpoint)
        check_tokens(lm.config, token_ids)
        nearest = self._nearest(lm, token_ids)
        text = nearest if nearest[: len(token_ids)] == token_ids else token_ids
        model = self.library.identity(lm)
        entry = self._cache.get((model, text), lambda: self._extend(lm, text, nearest))
        if len(nearest) < len(text) and text[: len(nearest)] == nearest:  # it is the beginning of this one now
            self._cache.drop(lambda key: key == (model, nearest))
        values = _make_activations(lm, model, token_ids, entry.read, entry.summary)
        metadata = {"token_bytes": tokenizer.bytes_of_ids, "merge_rules": tokenizer.merge_rules, "model": model}
        return Trace(lm.config, token_ids, tokenizer.vocabulary, values, Weights(model), **metadata)

    def _nearest(self, lm: TransformerLM, token_ids: tuple[int, ...]) -> tuple[int, ...]:
        """Return the cached text of the model with the longest common prefix."""
        model = get_identity(lm)
        texts = [text for owner, text in self._cache if owner == model]
        return max(texts, key=lambda text: common_prefix_length(text, token_ids), default=())

    def _extend(self, lm: TransformerLM, token_ids: tuple[int, ...], nearest: tuple[int, ...]) -> _CacheEntry:
        """Compute the cached state of a text, starting from the common prefix with a cached one."""
        model = get_identity(lm)
        if entry := self._cache.peek((model, nearest)):
            num_shared, cache = (
                common_prefix_length(nearest, token_ids),
                copy.deepcopy(entry.cache),
            )  # others may go on from it, too
            cache.length, earlier, summary = num_shared, entry.read[:num_shared], entry.summary.first(num_shared)
        else:
            earlier, summary = np.empty((0, lm.config.d_model), np.float32), None
            cache = KVCache(lm.config, device=lm.device, dtype=lm.dtype)
        check_budget(tokens=len(token_ids) - len(earlier))
        new = token_ids[len(earlier) :]
        outputs, _dtype = module_outputs(lm, new, (), {"final_norm": lm.final_norm}, lm.final_norm, cache)
        cache.length = len(token_ids)
        final_norm = np.concatenate([earlier, outputs["final_norm"]])
        return _CacheEntry(
            final_norm, cache, _make_activations(lm, model, token_ids, final_norm, summary).logits.summary
        )


def _make_activations(
    lm: TransformerLM, model: Hashable, token_ids: tuple[int, ...], final_norm: np.ndarray, summary: LogitSummary | None
) -> LazyActivations:
    """Return the activations of a text from the unembedding's input.

    The input and the summary may be those of a longer text that starts with this one.
    """
    length = len(token_ids)
    shapes = {"final_norm": (length, lm.config.d_model), "logits": (length, lm.config.vocab_size)}
    cached = summary and summary.first(length)
    return LazyActivations({"final_norm": final_norm[:length]}, shapes, model, token_ids, holds=lm, summary=cached)


def common_prefix_length(one: tuple[int, ...], other: tuple[int, ...]) -> int:
    """Return the number of tokens that two texts have in common at their start."""
    differences = (index for index, (a, b) in enumerate(zip(one, other, strict=False)) if a != b)
    return next(differences, min(len(one), len(other)))
