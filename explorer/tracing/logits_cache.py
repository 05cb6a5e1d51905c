"""What comes next in a text that is being written."""

import copy
from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np

from explorer.tracing.capture import outputs_of
from explorer.tracing.library import Library
from explorer.tracing.logits import Summary
from explorer.tracing.lru import LRU
from explorer.tracing.models import Weights, identity_of
from explorer.tracing.on_demand import OnDemand
from explorer.tracing.token_checks import check_tokens
from explorer.tracing.trace import Trace
from explorer.tracing.work import go_on
from model.kv_cache import KVCache
from model.transformer_lm import TransformerLM

MOST_BYTES = 128 << 20


@dataclass(frozen=True)
class _Kept:
    """Of a text.

    Attributes:
        read: (T, D) what the unembedding reads.
        cache: keys and values.
        summary: of the logits.
    """

    read: np.ndarray
    cache: KVCache
    summary: Summary

    @property
    def nbytes(self) -> int:
        return self.read.nbytes + self.cache.entries.nbytes + self.summary.nbytes


class LogitsCache:
    """Traces that answer for nothing but the logits, each continued from what is kept of its text: where tokens come
    many a second, to capture all values of all of them anew would take longer than they do.

    What is kept is what the unembedding reads, and the logits in a few numbers each. A text is kept once, as long as it
    was seen: what follows its beginnings is in it, as no token sees later ones.
    """

    def __init__(self, library: Library):
        self.library = library
        self._kept = LRU(MOST_BYTES, size=lambda kept: kept.nbytes)

    def trace(self, checkpoint: str, token_ids: tuple[int, ...]) -> Trace:
        """The logits after every token, as in the library's trace; it holds the model, and is not to be kept.

        Errors are those of `Library.trace`.
        """
        lm, tokenizer = self.library.model(checkpoint)
        check_tokens(lm.config, token_ids)
        near = self._nearest(lm, token_ids)
        text = near if near[: len(token_ids)] == token_ids else token_ids
        model = self.library.identity(lm)
        kept = self._kept.get((model, text), lambda: self._continued(lm, text, near))
        if len(near) < len(text) and text[: len(near)] == near:  # it is the beginning of this one now
            self._kept.drop(lambda key: key == (model, near))
        values = _values(lm, model, token_ids, kept.read, kept.summary)
        known = {"token_bytes": tokenizer.bytes_of_ids, "merge_rules": tokenizer.merge_rules, "model": model}
        return Trace(lm.config, token_ids, tokenizer.vocabulary, values, Weights(model), **known)

    def _nearest(self, lm: TransformerLM, token_ids: tuple[int, ...]) -> tuple[int, ...]:
        """The kept text of the model that begins with most of the same tokens."""
        model = identity_of(lm)
        texts = [text for owner, text in self._kept if owner == model]
        return max(texts, key=lambda text: num_shared(text, token_ids), default=())

    def _continued(self, lm: TransformerLM, token_ids: tuple[int, ...], near: tuple[int, ...]) -> _Kept:
        """What is kept of a text, from what is kept of one that may begin as it does."""
        model = identity_of(lm)
        if before := self._kept.peek((model, near)):
            known, cache = num_shared(near, token_ids), copy.deepcopy(before.cache)  # others may go on from it, too
            cache.length, earlier, summary = known, before.read[:known], before.summary.first(known)
        else:
            earlier, summary = np.empty((0, lm.config.d_model), np.float32), None
            cache = KVCache(lm.config, device=lm.device, dtype=lm.dtype)
        go_on(tokens=len(token_ids) - len(earlier))
        new = token_ids[len(earlier) :]
        found, _dtype = outputs_of(lm, new, (), {"final_norm": lm.final_norm}, lm.final_norm, cache)
        cache.length = len(token_ids)
        read = np.concatenate([earlier, found["final_norm"]])
        return _Kept(read, cache, _values(lm, model, token_ids, read, summary).logits.summary)


def _values(
    lm: TransformerLM, model: Hashable, token_ids: tuple[int, ...], read: np.ndarray, summary: Summary | None
) -> OnDemand:
    """Of a text, from what the unembedding reads of it or of one that goes on, and from as much as is known of the
    logits."""
    length = len(token_ids)
    shapes = {"final_norm": (length, lm.config.d_model), "logits": (length, lm.config.vocab_size)}
    known = summary and summary.first(length)
    return OnDemand({"final_norm": read[:length]}, shapes, model, token_ids, holds=lm, summary=known)


def num_shared(one: tuple[int, ...], other: tuple[int, ...]) -> int:
    """How many tokens two texts begin with alike."""
    differences = (place for place, (a, b) in enumerate(zip(one, other, strict=False)) if a != b)
    return next(differences, min(len(one), len(other)))
