"""One token at a time, in as few operations as it takes."""

import math
from collections.abc import Callable
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from model.config import ModelConfig
from model.kv_cache import KVCache
from model.layers.activations import KERNELS
from model.layers.layernorm import LayerNorm
from model.layers.linear import Linear
from model.layers.rmsnorm import RMSNorm
from model.layers.transformer_block import TransformerBlock
from model.transformer_lm import TransformerLM


class IncrementalDecoder:
    """Next-token logits of one sequence: the numbers of `lm(token, cache)`, several times as fast.

    Why a second way through the model: a step on one token is so small that the fixed cost of calling modules and
    operations outweighs the arithmetic. This follows `TransformerLM.forward` line by line and leaves out what a single
    position does without: taps, dropout, mask, batch and position axes. So hooks do not act here; a test holds it to
    `TransformerLM` for every choice a `ModelConfig` offers.

    Args:
        lm: the model, in float32. Most of its matrices are copied, in the order that suits a single token (see
            `reader`), which takes some milliseconds: after a change of weights, make a new decoder. Any number of
            decoders may share a model; one decoder is for one thread, since each step writes into the same memory.
    """

    def __init__(self, lm: TransformerLM):
        config, device = lm.config, lm.device
        self.embedding = lm.token_embedding.weight.detach()  # (V, D)
        self.embedding_scale = lm.embedding_scale
        self.positions = None
        if lm.position_embedding is not None:
            everywhere = torch.arange(config.context_length, device=device)
            self.positions = lm.position_embedding(everywhere).detach()  # (C, D)
        self.rotations = None
        if lm.rope is not None:
            # A pair (a, b) as the complex number a + i b turns by an angle φ when multiplied by eⁱᵠ.
            self.rotations = torch.polar(torch.ones_like(lm.rope.table), lm.rope.table)  # (C, F)
        self.blocks = [sublayers(block, config) for block in lm.blocks]
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
        rotation = None if self.rotations is None else self.rotations[position]  # (F,)
        x = self.embedding[token_id] * self.embedding_scale  # (D,), the residual stream
        if self.positions is not None:
            x += self.positions[position]
        for block, room in zip(self.blocks, layers, strict=True):
            attend, add_attention, attn_norm, hidden, add_hidden, ffn_norm = block
            x = attn_norm(add_attention(x, attend(x, rotation, *room)))
            x = ffn_norm(add_hidden(x, hidden(x)))
        self.unembed(x)
        return self.logits.clone()


def sublayers(block: TransformerBlock, config: ModelConfig) -> tuple[Callable[..., Tensor], ...]:
    """What attends, what adds the result to the stream, what normalises the stream; the same for the feed-forward.

    Pre-norm blocks normalise what a sublayer reads instead, so there the norm is part of the first.
    """
    before, after = (block.attn_norm, block.ffn_norm), (nn.Identity(), nn.Identity())
    if config.norm_placement == "post":
        before, after = after, before
    attention = Attention(before[0], block, config), adder(block.attn.o_proj), normaliser(after[0])
    return *attention, hidden_layer(before[1], block, config), adder(block.ffn.down_proj), normaliser(after[1])


class Attention:
    """z of one position, in the memory of its own query, key and value."""

    def __init__(self, norm: nn.Module, block: TransformerBlock, config: ModelConfig):
        attn, heads, kv_heads = block.attn, config.num_heads, config.kv_heads
        qkv = torch.empty(heads + 2 * kv_heads, config.d_head, device=attn.q_proj.weight.device)
        self.read = reader(norm, attn.q_proj, attn.k_proj, attn.v_proj, out=qkv.view(-1))
        q, k, self.kv = qkv[:heads], qkv[heads:-kv_heads], qkv[heads:].unflatten(0, (2, kv_heads))  # kv (2, G, d)
        self.queries = q.unflatten(0, (kv_heads, -1))  # (G, H / G, d), those that share a key side by side
        self.scale, self.zero = 1 / math.sqrt(config.d_head), qkv.new_zeros(())
        self.normalised = [(q, normaliser(attn.q_norm)), (k, normaliser(attn.k_norm))] if config.qk_norm else []
        pairs = qkv[:-kv_heads]  # (H + G, d), to be rotated
        self.adjacent = config.rope_layout == "adjacent"
        if config.position == "rope" and self.adjacent:
            self.pairs = torch.view_as_complex(pairs.unflatten(-1, (-1, 2)))  # (H + G, F)
        elif config.position == "rope":
            self.pairs = pairs.unflatten(-1, (2, -1)).unbind(-2)  # two of (H + G, F)

    def __call__(self, x: Tensor, rotation: Tensor | None, slot: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        """(D,) -> (D,): q attends to `keys` and `values` (G, K, d), the last of which go to `slot` (2, G, d)."""
        self.read(x)
        for part, normalise in self.normalised:
            part.copy_(normalise(part))
        if rotation is not None and self.adjacent:
            self.pairs.mul_(rotation)
        elif rotation is not None:
            a, b = self.pairs
            turned = torch.complex(a, b) * rotation
            a.copy_(turned.real)
            b.copy_(turned.imag)
        slot.copy_(self.kv)
        # For a single query three small products are quicker than PyTorch's fused kernel.
        scores = torch.baddbmm(self.zero, self.queries, keys.mT, alpha=self.scale)  # (G, H / G, K)
        return torch.bmm(scores.softmax(-1), values).flatten()


def hidden_layer(norm: nn.Module, block: TransformerBlock, config: ModelConfig) -> Callable[[Tensor], Tensor]:
    """(D,) -> (F,): the feed-forward up to its last projection."""
    ffn, device = block.ffn, block.ffn.up_proj.weight.device
    if config.ffn != "swiglu":
        read, activation = reader(norm, ffn.up_proj, out=torch.empty(config.d_ff, device=device)), KERNELS[config.ffn]
        return lambda x: activation(read(x))
    both = torch.empty(2, config.d_ff, device=device)
    read, gate, up = reader(norm, ffn.gate_proj, ffn.up_proj, out=both.view(-1)), both[0], both[1]

    def hidden(x: Tensor) -> Tensor:
        read(x)
        return F.silu(gate, inplace=True).mul_(up)

    return hidden


def reader(norm: nn.Module, *layers: Linear, out: Tensor) -> Callable[[Tensor], Tensor]:
    """x -> W norm(x) + b, written into `out`, for the W and b of all layers that read the same vector, stacked.

    W is a copy: in one piece, holding the gain of an RMSNorm, and laid out column after column. The columns of stacked
    matrices are long, and long runs of memory are read faster.
    """
    weight = torch.cat([layer.weight.detach() for layer in layers])  # (d_out, D)
    bias, beta = out, 0  # b is multiplied by beta: without one, what stands in `out` is
    if layers[0].bias is not None:
        bias, beta = torch.cat([layer.bias.detach() for layer in layers]), 1
    if type(norm) is RMSNorm:
        # W (x / rms ⊙ g) + b = (W diag(g)) x / rms + b: all that is left of the norm is a factor.
        weight, width, eps = by_columns(weight.mul_(norm.weight.detach())), weight.shape[1], norm.eps

        def read(x: Tensor) -> Tensor:
            rms = math.sqrt(x.dot(x).item() / width + eps)
            return torch.addmv(bias, weight, x, beta=beta, alpha=1 / rms, out=out)

        return read
    weight, normalise = by_columns(weight), normaliser(norm)
    return lambda x: torch.addmv(bias, weight, normalise(x), beta=beta, out=out)


def by_columns(matrix: Tensor) -> Tensor:
    """The same matrix, laid out column after column."""
    return matrix.t().contiguous().t()


def adder(layer: Linear) -> Callable[[Tensor, Tensor], Tensor]:
    """(x, y) -> x + W y + b, in the memory of x."""
    weight, bias = layer.weight.detach(), layer.bias
    if bias is None:
        return lambda x, y: x.addmv_(weight, y)
    bias = bias.detach()
    return lambda x, y: x.add_(bias).addmv_(weight, y)


def normaliser(layer: nn.Module) -> Callable[[Tensor], Tensor]:
    """The function of a norm over the last axis: of those known here in few operations, else the norm itself."""
    if type(layer) is LayerNorm:
        weight, bias = layer.weight.detach(), layer.bias.detach()
        return partial(F.layer_norm, normalized_shape=weight.shape, weight=weight, bias=bias, eps=layer.eps)
    if type(layer) is RMSNorm:
        # In four operations: x / √(mean(x²) + ε) = √D x / hypot(‖x‖, √(ε D)), the gain holding √D.
        width = layer.weight.shape[0]
        gain = layer.weight.detach() * math.sqrt(width)
        floor = torch.tensor(math.sqrt(layer.eps * width), device=gain.device)
        return lambda x: x / torch.hypot(torch.linalg.vector_norm(x, dim=-1, keepdim=True), floor) * gain
    return layer
