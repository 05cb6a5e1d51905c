"""One token at a time, in as few operations as it takes."""

import torch
from torch import Tensor

from model.generation.decoded_block import DECODED
from model.generation.decoded_layers import copying, in_place
from model.kv_cache import KVCache
from model.layers.softcap import softcap
from model.transformer_lm import TransformerLM

# Bytes of a model whose matrices are: those of a larger one are read as fast as they are laid out, and copies take as
# long to make as dozens of tokens.
MOST_COPIED = 64 << 20


class IncrementalDecoder:
    """Next-token logits of one sequence: the numbers of `lm(token, cache)`, several times as fast.

    Why a second way through the model: a step on one token is so small that the fixed cost of calling modules and
    operations outweighs the arithmetic. This follows `TransformerLM.forward` line by line and leaves out what a single
    position does without: taps, dropout, mask, batch and position axes. So hooks do not act here; a test holds it to
    `TransformerLM` for every choice a `ModelConfig` offers.

    Args:
        lm: the model, in float32. Most matrices of a small one on the CPU are copied, in the order that suits a single
            token (see `copying`), once for all decoders: after a change of weights, make a new one. Any number of
            decoders may share a model; one is for one thread, since each step writes into the same memory.
    """

    def __init__(self, lm: TransformerLM):
        config, device = lm.config, lm.device
        small = sum(weight.nbytes for weight in lm.parameters()) <= MOST_COPIED
        reader = copying if small and device.type == "cpu" else in_place
        self.embedding = lm.token_embedding.weight.detach()  # (V, D)
        self.embedding_scale, self.logit_cap = config.embedding_scale, config.logit_cap
        self.positions = None
        if lm.position_embedding is not None:
            everywhere = torch.arange(config.context_length, device=device)
            self.positions = lm.position_embedding(everywhere).detach()  # (C, D)
        # A pair (a, b) as the complex number a + i b turns by an angle φ when multiplied by eⁱᵠ.
        ropes = [rope for rope in (lm.rope, lm.local_rope) if rope is not None]
        self.rotations = [
            torch.complex(*rope(torch.arange(config.context_length, device=device))) for rope in ropes
        ]  # (C, F)
        self.local = [config.turns_locally(layer) for layer in range(config.num_layers)]
        self.blocks = [
            DECODED[config.norm_placement](block, config, layer, reader) for layer, block in enumerate(lm.blocks)
        ]
        self.logits = torch.empty(config.vocab_size, device=device)
        self.unembed = reader(lm.final_norm, lm.lm_head, out=self.logits)

    @torch.inference_mode()
    def __call__(self, token_id: int, cache: KVCache) -> Tensor:
        """Logits (V,) after one more token, which `cache` is extended by.

        Raises:
            ValueError: the cache is full.
        """
        layers = cache.extend()
        position = cache.length - 1
        rotations = [rotations[position] for rotations in self.rotations] or [None]  # (F,) each
        x = self.embedding[token_id] * self.embedding_scale  # (D,), the residual stream
        if self.positions is not None:
            x += self.positions[position]
        for block, room, local in zip(self.blocks, layers, self.local, strict=True):
            x = block(x, rotations[local], room)
        self.unembed(x)
        return softcap(self.logits.clone(), self.logit_cap)
