"""Incremental decoding: one token at a time, in few operations."""

import math
import platform
import threading
from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path
from weakref import WeakKeyDictionary

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from model.config import ModelConfig
from model.layers.attention import KVCache, softcap
from model.layers.basic_layers import LayerNorm, LayerNormOverHeads, Linear, RMSNorm, RMSNormOverHeads
from model.layers.feed_forward import KERNELS
from model.layers.transformer_block import (
    OutputNormBlock,
    ParallelBlock,
    PostNormBlock,
    SandwichBlock,
    SharedNormBlock,
    TransformerBlock,
)
from model.transformer_lm import TransformerLM

MAX_PACKED_BYTES = 64 << 20  # bytes of copies, beside those that are in use


class PackedWeightCache:
    """A cache of stacked matrices in column-major order, keyed by the layers that they were made of.

    Columns of stacked matrices are long, and long runs of memory are read faster. A copy is used as long as the
    weights are unchanged; the check takes a matrix-vector product with each of them, as much as one more token.

    Args:
        max_bytes: bound of all copies together; the least recently used go first, the newest stays in any case.
    """

    def __init__(self, max_bytes: int = MAX_PACKED_BYTES):
        self.max_bytes = max_bytes
        self._copies: WeakKeyDictionary[nn.Module, tuple[Tensor, Tensor]] = WeakKeyDictionary()  # oldest first
        self._lock = threading.Lock()

    @property
    def num_bytes(self) -> int:
        with self._lock:
            return sum(copy.nbytes for _version, copy in self._copies.values())

    def get_stacked(self, layers: Sequence[Linear], gain: Tensor | None = None) -> Tensor:
        """Return the matrices of layers that read the same vector, stacked to (d_out, D); read-only.

        Each column is multiplied by its element of `gain` (D,).
        """
        version = self._version(layers, gain)
        with self._lock:
            copied_version, copy = self._copies.pop(layers[0], (None, None))
        if copied_version is None or not torch.equal(copied_version, version):
            matrix = torch.cat([layer.weight.detach() for layer in layers])
            if gain is not None:
                matrix.mul_(gain.detach())
            copy = matrix.t().contiguous().t()
        with self._lock:
            self._copies[layers[0]] = version, copy
            total_bytes = sum(cached.nbytes for _copied_version, cached in self._copies.values())
            for layer in list(self._copies)[:-1]:
                if total_bytes <= self.max_bytes:
                    break
                total_bytes -= self._copies.pop(layer)[1].nbytes
        return copy

    def _version(self, layers: Sequence[Linear], gain: Tensor | None) -> Tensor:
        """Return numbers that change if a weight does."""
        checksums = [layer.weight.detach().mv(random_probe_vector(layer.weight.shape[1])) for layer in layers]
        return torch.cat(checksums if gain is None else [*checksums, gain.detach()])


@cache
def random_probe_vector(width: int) -> Tensor:
    """Return (width,) random numbers, all different, so that swapped weights change the product."""
    return torch.randn(width, generator=torch.Generator().manual_seed(0))


PACKED_WEIGHTS = PackedWeightCache()


MIN_ONEDNN_BYTES = 1 << 20  # bytes of a matrix: with smaller ones a call of it takes longer than the product
INTEL, CPU_INFO = "GenuineIntel", Path("/proc/cpuinfo")
Reader = Callable[[Tensor], Tensor]  # (D,) -> (d_out,)
MakeReader = Callable[..., Reader]  # `make_packed_norm_linear` or `make_unpacked_norm_linear`


class SingleTokenAttention:
    """z of a single position; query, key and value are computed into one preallocated tensor."""

    def __init__(self, norm: nn.Module, block: TransformerBlock, config: ModelConfig, layer: int, reader: MakeReader):
        attn, heads, kv_heads = block.attn, config.num_heads, config.kv_heads
        qkv = torch.empty(heads + 2 * kv_heads, config.d_head, device=attn.q_proj.weight.device)
        self.read = reader(norm, attn.q_proj, attn.k_proj, attn.v_proj, out=qkv.view(-1))
        q, k, self.kv = qkv[:heads], qkv[heads:-kv_heads], qkv[heads:].unflatten(0, (2, kv_heads))  # kv (2, G, d)
        self.queries = q.unflatten(0, (kv_heads, -1))  # (G, H / G, d), those that share a key side by side
        self.scale, self.zero = 1 / config.divisor, qkv.new_zeros(())
        self.cap = config.score_cap
        self.window = attn.window
        vectors_and_norms = [(q, attn.q_norm), (k, attn.k_norm)] if config.qk_norm else []
        if config.qk_norm_over == "all":
            vectors_and_norms = [(vectors.view(-1), norm) for vectors, norm in vectors_and_norms]
        self.normalised = [(vectors, make_normaliser(norm)) for vectors, norm in vectors_and_norms]
        pairs = qkv[:-kv_heads]  # (H + G, d), to be rotated
        self.rotates, self.adjacent = config.has_rope(layer), config.rope_layout == "adjacent"
        if self.rotates and self.adjacent:
            self.pairs = torch.view_as_complex(pairs.unflatten(-1, (-1, 2)))  # (H + G, F)
        elif self.rotates:
            self.pairs = pairs.unflatten(-1, (2, -1)).unbind(-2)  # two of (H + G, F)

    def __call__(self, x: Tensor, rotation: Tensor | None, slot: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        """Attend from the position with input x (D,) and return z (H d,).

        `keys` and `values` (G, K, d) include this position as their last, whose key and value are written to
        `slot` (2, G, d).
        """
        self.read(x)
        for vectors, normalise in self.normalised:
            vectors.copy_(normalise(vectors))
        if self.rotates and self.adjacent:
            self.pairs.mul_(rotation)
        elif self.rotates:
            a, b = self.pairs
            rotated = torch.complex(a, b) * rotation
            a.copy_(rotated.real)
            b.copy_(rotated.imag)
        slot.copy_(self.kv)
        if self.window:
            keys, values = keys[:, -self.window :], values[:, -self.window :]
        # For a single query three small products are quicker than PyTorch's fused kernel.
        scores = torch.baddbmm(self.zero, self.queries, keys.mT, beta=0, alpha=self.scale)  # (G, H / G, K)
        return torch.bmm(softcap(scores, self.cap).softmax(-1), values).flatten()


def make_feed_forward_hidden(
    norm: nn.Module, block: TransformerBlock, config: ModelConfig, reader: MakeReader
) -> Callable[[Tensor], Tensor]:
    """Return a function (D,) -> (F,): the feed-forward up to its last projection."""
    ffn, device = block.ffn, block.ffn.up_proj.weight.device
    if not config.is_gated:
        read, activation = reader(norm, ffn.up_proj, out=torch.empty(config.d_ff, device=device)), KERNELS[config.ffn]
        return lambda x: activation(read(x))
    gate_and_up = torch.empty(2, config.d_ff, device=device)
    read, gate, up = reader(norm, ffn.gate_proj, ffn.up_proj, out=gate_and_up.view(-1)), gate_and_up[0], gate_and_up[1]
    activation = partial(F.silu, inplace=True) if config.ffn == "swiglu" else ffn.activation

    def compute_hidden(x: Tensor) -> Tensor:
        read(x)
        return activation(gate).mul_(up)

    return compute_hidden


def make_packed_norm_linear(norm: nn.Module, *layers: Linear, out: Tensor) -> Reader:
    """Return a function x -> W norm(x) + b that writes into `out`, with one matrix for all `layers`.

    W stacks a copy of the matrices of layers that read the same vector: in one piece, multiplied by the gain of an
    RMSNorm, and in column-major order.
    """
    bias, beta = out, 0  # with beta = 0 the old content of `out` is ignored
    if layers[0].bias is not None:
        bias, beta = torch.cat([layer.bias.detach() for layer in layers]), 1
    if type(norm) is RMSNorm:
        # W (x / rms ⊙ g) + b = (W diag(g)) x / rms + b: all that is left of the norm is a factor.
        weight, eps = PACKED_WEIGHTS.get_stacked(layers, norm.weight), norm.eps  # (d_out, D)
        width = weight.shape[1]

        def read(x: Tensor) -> Tensor:
            rms = math.sqrt(x.dot(x).item() / width + eps)
            return torch.addmv(bias, weight, x, beta=beta, alpha=1 / rms, out=out)

        return read
    weight, normalise = PACKED_WEIGHTS.get_stacked(layers), make_normaliser(norm)
    return lambda x: torch.addmv(bias, weight, normalise(x), beta=beta, out=out)


def make_unpacked_norm_linear(norm: nn.Module, *layers: Linear, out: Tensor) -> Reader:
    """Return a function x -> W norm(x) + b that writes into `out`, with the layers' own matrices.

    For large models, where copies would take too much memory.
    """
    outputs = out.split([layer.weight.shape[0] for layer in layers])
    products = [make_matvec(layer.weight, layer.bias, output) for layer, output in zip(layers, outputs, strict=True)]
    normalise = make_normaliser(norm)

    def read(x: Tensor) -> Tensor:
        normalised = normalise(x)
        for multiply in products:
            multiply(normalised)
        return out

    return read


def make_matvec(weight: Tensor, bias: Tensor | None, out: Tensor | None = None) -> Reader:
    """Return a function x -> W x + b, written into `out` if given, by a matrix in its own row-major layout."""
    weight, bias = weight.detach(), None if bias is None else bias.detach()
    if suits_onednn(weight):
        linear = onednn_linear()

        def multiply(x: Tensor) -> Tensor:
            return linear(x[None], weight, bias, "none", (), "")[0]

        return multiply if out is None else lambda x: out.copy_(multiply(x))
    if bias is None:
        return partial(torch.mv, weight, out=out)
    return partial(torch.addmv, bias, weight, out=out)


def suits_onednn(weight: Tensor) -> bool:
    """Return True if oneDNN is the faster way to multiply by this matrix.

    PyTorch's BLAS is Intel's MKL: on Intel's CPUs it decodes a large model faster, on AMD's oneDNN does
    (docs/performance.md).
    """
    suits = weight.is_cpu and weight.dtype == torch.float32 and weight.is_contiguous()
    return suits and weight.nbytes >= MIN_ONEDNN_BYTES and not is_intel_cpu() and onednn_linear() is not None


@cache
def is_intel_cpu() -> bool:
    """Return True if the operating system reports an Intel CPU."""
    cpu_info = CPU_INFO.read_text("utf-8", "replace") if CPU_INFO.exists() else platform.processor()
    return INTEL in cpu_info


@cache
def onednn_linear() -> Callable[..., Tensor] | None:
    """Return PyTorch's operator for oneDNN's linear map; None where this build has none."""
    if not torch.backends.mkldnn.is_available():
        return None
    return getattr(torch.ops.mkldnn, "_linear_pointwise", None)


def make_residual_adder(layer: Linear, norm: nn.Module | None = None) -> Callable[[Tensor, Tensor], Tensor]:
    """Return a function (x, y) -> x + W y + b, or x + norm(W y + b), that works in place on x."""
    multiply = make_matvec(layer.weight, layer.bias)
    if norm is not None:
        normalise = make_normaliser(norm)
        return lambda x, y: x.add_(normalise(multiply(y)))
    if layer.bias is None and not suits_onednn(layer.weight):
        weight = layer.weight.detach()
        return lambda x, y: x.addmv_(weight, y)
    return lambda x, y: x.add_(multiply(y))


def make_normaliser(layer: nn.Module) -> Callable[[Tensor], Tensor]:
    """Return a function that applies a norm over the last axis.

    LayerNorm and RMSNorm are computed in few operations; any other layer is returned itself.
    """
    if type(layer) in (LayerNorm, LayerNormOverHeads):
        weight, bias = layer.weight.detach(), layer.bias.detach()
        return partial(F.layer_norm, normalized_shape=weight.shape, weight=weight, bias=bias, eps=layer.eps)
    if type(layer) in (RMSNorm, RMSNormOverHeads):
        # In four operations: x / √(mean(x²) + ε) = √D x / hypot(‖x‖, √(ε D)), the gain holding √D.
        width = layer.weight.shape[0]
        gain = layer.weight.detach() * math.sqrt(width)
        floor = torch.tensor(math.sqrt(layer.eps * width), device=gain.device)
        return lambda x: x / torch.hypot(torch.linalg.vector_norm(x, dim=-1, keepdim=True), floor) * gain
    return layer


Block = Callable[
    [Tensor, Tensor | None, tuple[Tensor, Tensor, Tensor]], Tensor
]  # stream, rotation, cache slot (slot, keys, values)


def make_pre_norm_step(block: TransformerBlock, config: ModelConfig, layer: int, reader: MakeReader) -> Block:
    """Return the decoding step of a block with norms before the sublayers."""
    return make_sequential_step(block, config, layer, reader, (block.attn_norm, block.ffn_norm))


def make_post_norm_step(block: PostNormBlock, config: ModelConfig, layer: int, reader: MakeReader) -> Block:
    """Return the decoding step of a block with norms after the additions."""
    identity = nn.Identity()
    attend, hidden = (
        SingleTokenAttention(identity, block, config, layer, reader),
        make_feed_forward_hidden(identity, block, config, reader),
    )
    add_attention, add_hidden = make_residual_adder(block.attn.o_proj), make_residual_adder(block.ffn.down_proj)
    attn_norm, ffn_norm = make_normaliser(block.attn_norm), make_normaliser(block.ffn_norm)

    def step(x: Tensor, rotation: Tensor | None, cache_slot: tuple[Tensor, Tensor, Tensor]) -> Tensor:
        x = attn_norm(add_attention(x, attend(x, rotation, *cache_slot)))
        return ffn_norm(add_hidden(x, hidden(x)))

    return step


def make_output_norm_step(block: OutputNormBlock, config: ModelConfig, layer: int, reader: MakeReader) -> Block:
    """Return the decoding step of a block with norms of the sublayers' outputs."""
    identity = nn.Identity()
    return make_sequential_step(block, config, layer, reader, (identity, identity), (block.attn_norm, block.ffn_norm))


def make_sandwich_step(block: SandwichBlock, config: ModelConfig, layer: int, reader: MakeReader) -> Block:
    """Return the decoding step of a block with norms before and after each sublayer."""
    input_norms, output_norms = (block.attn_norm, block.ffn_norm), (block.attn_out_norm, block.ffn_out_norm)
    return make_sequential_step(block, config, layer, reader, input_norms, output_norms)


def make_sequential_step(
    block: TransformerBlock,
    config: ModelConfig,
    layer: int,
    reader: MakeReader,
    input_norms: tuple[nn.Module, nn.Module],
    output_norms: tuple[nn.Module | None, nn.Module | None] = (None, None),
) -> Block:
    """Return a block of attention, then feed-forward, with norms of their inputs and of their outputs."""
    attend, hidden = (
        SingleTokenAttention(input_norms[0], block, config, layer, reader),
        make_feed_forward_hidden(input_norms[1], block, config, reader),
    )
    add_attention, add_hidden = (
        make_residual_adder(block.attn.o_proj, output_norms[0]),
        make_residual_adder(block.ffn.down_proj, output_norms[1]),
    )

    def step(x: Tensor, rotation: Tensor | None, cache_slot: tuple[Tensor, Tensor, Tensor]) -> Tensor:
        x = add_attention(x, attend(x, rotation, *cache_slot))
        return add_hidden(x, hidden(x))

    return step


def make_parallel_norms_step(block: ParallelBlock, config: ModelConfig, layer: int, reader: MakeReader) -> Block:
    """Return the decoding step of a parallel block with a norm for each sublayer."""
    return make_parallel_step(block, config, layer, reader, block.ffn_norm)


def make_shared_norm_step(block: SharedNormBlock, config: ModelConfig, layer: int, reader: MakeReader) -> Block:
    """Return the decoding step of a parallel block with one norm."""
    return make_parallel_step(block, config, layer, reader, block.attn_norm)


def make_parallel_step(
    block: ParallelBlock | SharedNormBlock, config: ModelConfig, layer: int, reader: MakeReader, ffn_norm: nn.Module
) -> Block:
    """Return the decoding step of a parallel block."""
    attend = SingleTokenAttention(block.attn_norm, block, config, layer, reader)
    hidden = make_feed_forward_hidden(ffn_norm, block, config, reader)
    add_attention, add_hidden = make_residual_adder(block.attn.o_proj), make_residual_adder(block.ffn.down_proj)

    def step(x: Tensor, rotation: Tensor | None, cache_slot: tuple[Tensor, Tensor, Tensor]) -> Tensor:
        neurons = hidden(x)  # before attention adds to x in its own memory
        return add_hidden(add_attention(x, attend(x, rotation, *cache_slot)), neurons)

    return step


DECODE_BLOCKS = {
    "pre": make_pre_norm_step,
    "post": make_post_norm_step,
    "parallel": make_parallel_norms_step,
    "shared": make_shared_norm_step,
    "output": make_output_norm_step,
    "sandwich": make_sandwich_step,
}


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
