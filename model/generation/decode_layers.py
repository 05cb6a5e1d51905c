"""Transformer layers that compute a single position."""

import math
import platform
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from model.config import ModelConfig
from model.generation.weight_packing import PACKED_WEIGHTS
from model.layers.activations import KERNELS
from model.layers.layernorm import LayerNorm
from model.layers.linear import Linear
from model.layers.norms import LayerNormOverHeads, RMSNormOverHeads
from model.layers.rmsnorm import RMSNorm
from model.layers.softcap import softcap
from model.layers.transformer_block import TransformerBlock

MIN_ONEDNN_BYTES = 1 << 20  # bytes of a matrix: with smaller ones a call of it takes longer than the product
INTEL, CPU_INFO = "GenuineIntel", Path("/proc/cpuinfo")
Reader = Callable[[Tensor], Tensor]  # (D,) -> (d_out,)
MakeReader = Callable[..., Reader]  # `make_packed_norm_linear` or `make_unpacked_norm_linear`


class DecodeAttention:
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


def make_hidden_layer(
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
    (tests/benchmarks/README.md).
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
