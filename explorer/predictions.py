"""What comes next in a text that is being written."""

import copy

import numpy as np
import torch

from explorer.capture import as_array, check_tokens, weights_of
from explorer.library import LRU, Library
from explorer.trace import Trace
from model.kv_cache import KVCache

MOST_BYTES = 256 << 20


class Predictions:
    """Traces that hold nothing but the logits, each continued from that of all its tokens but the last: where tokens
    come many a second, to capture all values of all of them anew would take longer than they do."""

    def __init__(self, library: Library):
        self.library = library
        self._kept = LRU(MOST_BYTES, size=lambda kept: kept[0].num_bytes + kept[1].entries.nbytes)

    def trace(self, checkpoint: str, token_ids: tuple[int, ...]) -> Trace:
        """The logits after every token, as in the library's trace; errors are those of `Library.trace`."""
        trace, _ = self._kept.get((checkpoint, token_ids), lambda: self.compute(checkpoint, token_ids))
        return trace

    @torch.inference_mode()
    def compute(self, checkpoint: str, token_ids: tuple[int, ...]) -> tuple[Trace, KVCache]:
        lm, tokenizer = self.library.model(checkpoint)
        check_tokens(lm.config, token_ids)
        if before := self._kept.peek((checkpoint, token_ids[:-1])):
            earlier, cache = before[0]["logits"], copy.deepcopy(before[1])  # others may go on from it, too
        else:
            earlier = np.empty((0, lm.config.vocab_size), np.float32)
            cache = KVCache(lm.config, device=lm.device, dtype=lm.token_embedding.weight.dtype)
        new = torch.tensor([token_ids[len(earlier) :]], device=lm.device)
        logits = np.concatenate([earlier, as_array(lm(new, cache)[0])])  # (T, V)
        values = {"logits": logits}
        return Trace(lm.config, token_ids, tokenizer.vocabulary, values, weights_of(lm), tokenizer.merged_bytes), cache
