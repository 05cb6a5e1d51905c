"""What comes next in a text that is being written."""

import copy
from dataclasses import replace

import numpy as np
import torch

from explorer.tracing.arrays import as_array
from explorer.tracing.library import Library
from explorer.tracing.lru import LRU
from explorer.tracing.models import Weights, identity_of
from explorer.tracing.token_checks import check_tokens
from explorer.tracing.trace import Trace
from explorer.tracing.work import go_on
from model.kv_cache import KVCache
from model.tokenizer import Tokenizer
from model.transformer_lm import TransformerLM

MOST_BYTES = 128 << 20


class LogitsCache:
    """Traces that hold nothing but the logits, each continued from what is kept of its text: where tokens come many a
    second, to capture all values of all of them anew would take longer than they do.

    A text is kept once, as long as it was seen: what follows its beginnings is in it, as no token sees later ones.
    """

    def __init__(self, library: Library):
        self.library = library
        self._kept = LRU(MOST_BYTES, size=lambda kept: kept[0].num_bytes + kept[1].entries.nbytes)

    def trace(self, checkpoint: str, token_ids: tuple[int, ...]) -> Trace:
        """The logits after every token, as in the library's trace; errors are those of `Library.trace`."""
        lm, tokenizer = self.library.model(checkpoint)
        check_tokens(lm.config, token_ids)
        near = self._nearest(lm, token_ids)
        text = near if near[: len(token_ids)] == token_ids else token_ids
        model = identity_of(lm)
        trace, _ = self._kept.get((model, text), lambda: self._continued(lm, tokenizer, text, near))
        if len(near) < len(text) and text[: len(near)] == near:  # it is the beginning of this one now
            self._kept.drop(lambda key: key == (model, near))
        return beginning(trace, len(token_ids))

    def _nearest(self, lm: TransformerLM, token_ids: tuple[int, ...]) -> tuple[int, ...]:
        """The kept text of the model that begins with most of the same tokens."""
        model = identity_of(lm)
        texts = [text for owner, text in self._kept if owner == model]
        return max(texts, key=lambda text: num_shared(text, token_ids), default=())

    @torch.inference_mode()
    def _continued(
        self, lm: TransformerLM, tokenizer: Tokenizer, token_ids: tuple[int, ...], near: tuple[int, ...]
    ) -> tuple[Trace, KVCache]:
        """The logits and the keys and values of a text, from those of one that may begin as it does."""
        if before := self._kept.peek((identity_of(lm), near)):
            known, cache = num_shared(near, token_ids), copy.deepcopy(before[1])  # others may go on from it, too
            cache.length, earlier = known, before[0]["logits"][:known]
        else:
            earlier = np.empty((0, lm.config.vocab_size), np.float32)
            cache = KVCache(lm.config, device=lm.device, dtype=lm.dtype)
        go_on(tokens=len(token_ids) - len(earlier))
        new = torch.tensor([token_ids[len(earlier) :]], device=lm.device)
        values = {"logits": np.concatenate([earlier, as_array(lm(new, cache)[0])])}  # (T, V)
        model = self.library.identity(lm)
        known = {"token_bytes": tokenizer.bytes_of_ids, "merge_rules": tokenizer.merge_rules, "model": model}
        return Trace(lm.config, token_ids, tokenizer.vocabulary, values, Weights(model), **known), cache


def beginning(trace: Trace, length: int) -> Trace:
    """What the run was after that many tokens."""
    if length == len(trace):
        return trace
    return replace(trace, token_ids=trace.token_ids[:length], values={"logits": trace["logits"][:length]})


def num_shared(one: tuple[int, ...], other: tuple[int, ...]) -> int:
    """How many tokens two texts begin with alike."""
    differences = (place for place, (a, b) in enumerate(zip(one, other, strict=False)) if a != b)
    return next(differences, min(len(one), len(other)))
