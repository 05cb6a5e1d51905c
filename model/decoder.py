"""One token at a time, in as few operations as it takes."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from model.kv_cache import KVCache
from model.transformer_lm import TransformerLM


class IncrementalDecoder:
    """Next-token logits of one sequence: the numbers of `lm(token, cache)`, about three times as fast.

    Why a second way through the model: a step on one token is so small that the fixed cost of calling modules and
    operations outweighs the arithmetic. This follows `TransformerLM.forward` line by line on the model's own weights
    and leaves out what a single position does without: taps, dropout, mask, batch and position axes. So hooks do not
    act here; a test holds it to `TransformerLM` for every choice a `ModelConfig` offers.

    Args:
        lm: the model, in float32. Its matrices are not copied, its gains are: after a change of weights, make a new
            decoder. Any number of decoders may share a model; one decoder is for one thread.
    """

    def __init__(self, lm: TransformerLM):
        config, device = lm.config, lm.device
        self.embedding = lm.token_embedding.weight.detach()  # (V, D)
        self.unembedding = lm.lm_head.weight.detach()  # (V, D)
        self.final_gain = scaled_gain(lm.final_norm)
        self.floor = torch.tensor(math.sqrt(config.norm_eps * config.d_model), device=device)
        self.blocks = [
            (
                scaled_gain(block.attn_norm),
                [getattr(block.attn, name).weight.detach() for name in ("q_proj", "k_proj", "v_proj", "o_proj")],
                scaled_gain(block.ffn_norm),
                [getattr(block.ffn, name).weight.detach() for name in ("gate_proj", "up_proj", "down_proj")],
            )
            for block in lm.blocks
        ]
        self.qkv = torch.empty(3, config.num_heads, config.d_head, device=device)
        self.rotations = self.qk = None
        if lm.rope is not None:
            # A pair (x₀, x₁) as the complex number x₀ + i x₁ turns by an angle φ when multiplied by eⁱᵠ.
            self.rotations = torch.polar(torch.ones_like(lm.rope.table), lm.rope.table)  # (C, F)
            self.qk = torch.view_as_complex(self.qkv[:2].unflatten(-1, (-1, 2)))  # (2, H, F), the memory of q and k

    @torch.inference_mode()
    def __call__(self, token_id: int, cache: KVCache) -> Tensor:
        """Logits (V,) after one more token, which `cache` is extended by.

        Raises:
            ValueError: the cache is full.
        """
        layers = cache.extend()
        rotation = None if self.rotations is None else self.rotations[cache.length - 1]  # (F,)
        q, k, v = self.qkv.flatten(1).unbind()  # (H d,) each
        query = self.qkv[:1].transpose(0, 1)[None]  # (1, H, 1, d), the memory of q
        x = self.embedding[token_id].clone()  # (D,), the residual stream
        for block, (slot, keys, values) in zip(self.blocks, layers, strict=True):
            attn_gain, (q_proj, k_proj, v_proj, o_proj), ffn_gain, (gate_proj, up_proj, down_proj) = block
            normed = self.norm(x, attn_gain)
            torch.mv(q_proj, normed, out=q)
            torch.mv(k_proj, normed, out=k)
            torch.mv(v_proj, normed, out=v)
            if rotation is not None:
                self.qk.mul_(rotation)
            slot.copy_(self.qkv[1:])
            z = F.scaled_dot_product_attention(query, keys, values)  # (1, H, 1, d)
            x.addmv_(o_proj, z.flatten())
            normed = self.norm(x, ffn_gain)
            hidden = F.silu(torch.mv(gate_proj, normed)) * torch.mv(up_proj, normed)  # (F,)
            x.addmv_(down_proj, hidden)
        return torch.mv(self.unembedding, self.norm(x, self.final_gain))

    def norm(self, x: Tensor, gain: Tensor) -> Tensor:
        """RMSNorm in four operations: x / √(mean(x²) + ε) = √D x / hypot(‖x‖, √(ε D)), `gain` holding √D."""
        return x / torch.hypot(torch.linalg.vector_norm(x), self.floor) * gain


def scaled_gain(norm: torch.nn.Module) -> Tensor:
    """√D times the gain (D,) of an `RMSNorm`."""
    return norm.weight.detach() * math.sqrt(norm.weight.shape[0])
