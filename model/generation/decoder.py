"""Incremental decoding: one token at a time, in few operations."""

import torch
from torch import Tensor

from model.generation.decode_blocks import DECODE_BLOCKS
from model.generation.decode_layers import make_packed_norm_linear, make_unpacked_norm_linear
from model.kv_cache import KVCache
from model.layers.softcap import softcap
from model.transformer_lm import TransformerLM

# Bytes of a model whose matrices are: those of a larger one are read as fast as they are laid out, and copies take as
# long to make as dozens of tokens.
MAX_COPIED_BYTES = 64 << 20


class IncrementalDecoder:
    """Next-token logits of one sequence: the numbers of `lm(token, cache)`, several times as fast.

    A step on one token is so small that the fixed cost of calling modules and operations outweighs the arithmetic.
    This follows `TransformerLM.forward` line by line and omits what a single position does not need: taps,
    dropout, mask, batch and position axes. So hooks have no effect here; a test compares it with `TransformerLM`
    for every choice that a `ModelConfig` offers.

    Args:
        lm: the model, in float32. Most matrices of a small one on the CPU are copied, in a layout that suits a
            single token (see `make_packed_norm_linear`), once for all decoders: after a change of weights, make a new
            one. Any number of decoders may share a model; use each in one thread only, since each step writes into
            the same memory.
    """

    def __init__(self, lm: TransformerLM):
        config, device = lm.config, lm.device
        small = sum(weight.nbytes for weight in lm.parameters()) <= MAX_COPIED_BYTES
        reader = make_packed_norm_linear if small and device.type == "cpu" else make_unpacked_norm_linear
        self.embedding = lm.token_embedding.weight.detach()  # (V, D)
        self.embedding_scale, self.logit_cap = config.embedding_scale, config.logit_cap
        self.positions = None
        if lm.position_embedding is not None:
            all_positions = torch.arange(config.context_length, device=device)
            self.positions = lm.position_embedding(all_positions).detach()  # (C, D)
        # A pair (a, b) as the complex number a + i b turns by an angle φ when multiplied by eⁱᵠ.
        ropes = [rope for rope in (lm.rope, lm.local_rope) if rope is not None]
        self.rotations = [
            torch.complex(*rope(torch.arange(config.context_length, device=device))) for rope in ropes
        ]  # (C, F)
        self.local = [config.uses_local_rope(layer) for layer in range(config.num_layers)]
        self.blocks = [
            DECODE_BLOCKS[config.norm_placement](block, config, layer, reader) for layer, block in enumerate(lm.blocks)
        ]
        self.logits = torch.empty(config.vocab_size, device=device)
        self.unembed = reader(lm.final_norm, lm.lm_head, out=self.logits)

    @torch.inference_mode()
    def __call__(self, token_id: int, cache: KVCache) -> Tensor:
        """Return logits (V,) after one more token, and append its keys and values to `cache`.

        Raises:
            ValueError: the cache is full.
        """
        layers = cache.extend()
        position = cache.length - 1
        rotations = [rotations[position] for rotations in self.rotations] or [None]  # (F,) each
        x = self.embedding[token_id] * self.embedding_scale  # (D,), the residual stream
        if self.positions is not None:
            x += self.positions[position]
        for block, cache_slot, local in zip(self.blocks, layers, self.local, strict=True):
            x = block(x, rotations[local], cache_slot)
        self.unembed(x)
        return softcap(self.logits.clone(), self.logit_cap)
