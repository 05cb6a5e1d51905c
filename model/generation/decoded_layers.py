"""The layers of a model for one token at a time."""

import math
import platform
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from model.config import ModelConfig
from model.generation.copied_weights import COPIES
from model.layers.activations import KERNELS
from model.layers.layernorm import LayerNorm
from model.layers.linear import Linear
from model.layers.norms import LayerNormOverHeads, RMSNormOverHeads
from model.layers.rmsnorm import RMSNorm
from model.layers.softcap import softcap
from model.layers.transformer_block import TransformerBlock

LEAST_FOR_ONEDNN = 1 << 20  # bytes of a matrix: with smaller ones a call of it takes longer than the product
INTEL, CPU_INFO = "GenuineIntel", Path("/proc/cpuinfo")
Reader = Callable[[Tensor], Tensor]  # (D,) -> (d_out,)
MakeReader = Callable[..., Reader]  # `copying` or `in_place`


class Attention:
    """z of one position, in the memory of its own query, key and value."""

    def __init__(self, norm: nn.Module, block: TransformerBlock, config: ModelConfig, layer: int, reader: MakeReader):
        attn, heads, kv_heads = block.attn, config.num_heads, config.kv_heads
        qkv = torch.empty(heads + 2 * kv_heads, config.d_head, device=attn.q_proj.weight.device)
        self.read = reader(norm, attn.q_proj, attn.k_proj, attn.v_proj, out=qkv.view(-1))
        q, k, self.kv = qkv[:heads], qkv[heads:-kv_heads], qkv[heads:].unflatten(0, (2, kv_heads))  # kv (2, G, d)
        self.queries = q.unflatten(0, (kv_heads, -1))  # (G, H / G, d), those that share a key side by side
        self.scale, self.zero = 1 / config.divisor, qkv.new_zeros(())
        self.cap = config.score_cap
        self.window = attn.window
        compared = [(q, attn.q_norm), (k, attn.k_norm)] if config.qk_norm else []
        if config.qk_norm_over == "all":
            compared = [(part.view(-1), norm) for part, norm in compared]
        self.normalised = [(part, normaliser(norm)) for part, norm in compared]
        pairs = qkv[:-kv_heads]  # (H + G, d), to be rotated
        self.rotates, self.adjacent = config.rotates(layer), config.rope_layout == "adjacent"
        if self.rotates and self.adjacent:
            self.pairs = torch.view_as_complex(pairs.unflatten(-1, (-1, 2)))  # (H + G, F)
        elif self.rotates:
            self.pairs = pairs.unflatten(-1, (2, -1)).unbind(-2)  # two of (H + G, F)

    def __call__(self, x: Tensor, rotation: Tensor | None, slot: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        """(D,) -> (D,): q attends to `keys` and `values` (G, K, d), the last of which go to `slot` (2, G, d)."""
        self.read(x)
        for part, normalise in self.normalised:
            part.copy_(normalise(part))
        if self.rotates and self.adjacent:
            self.pairs.mul_(rotation)
        elif self.rotates:
            a, b = self.pairs
            turned = torch.complex(a, b) * rotation
            a.copy_(turned.real)
            b.copy_(turned.imag)
        slot.copy_(self.kv)
        if self.window:
            keys, values = keys[:, -self.window :], values[:, -self.window :]
        # For a single query three small products are quicker than PyTorch's fused kernel.
        scores = torch.baddbmm(self.zero, self.queries, keys.mT, beta=0, alpha=self.scale)  # (G, H / G, K)
        return torch.bmm(softcap(scores, self.cap).softmax(-1), values).flatten()


def hidden_layer(
    norm: nn.Module, block: TransformerBlock, config: ModelConfig, reader: MakeReader
) -> Callable[[Tensor], Tensor]:
    """(D,) -> (F,): the feed-forward up to its last projection."""
    ffn, device = block.ffn, block.ffn.up_proj.weight.device
    if not config.is_gated:
        read, activation = reader(norm, ffn.up_proj, out=torch.empty(config.d_ff, device=device)), KERNELS[config.ffn]
        return lambda x: activation(read(x))
    both = torch.empty(2, config.d_ff, device=device)
    read, gate, up = reader(norm, ffn.gate_proj, ffn.up_proj, out=both.view(-1)), both[0], both[1]
    activation = partial(F.silu, inplace=True) if config.ffn == "swiglu" else ffn.activation

    def hidden(x: Tensor) -> Tensor:
        read(x)
        return activation(gate).mul_(up)

    return hidden


def copying(norm: nn.Module, *layers: Linear, out: Tensor) -> Reader:
    """x -> W norm(x) + b, written into `out`, for the W and b of all layers that read the same vector, stacked.

    W is a copy: in one piece, holding the gain of an RMSNorm, and laid out column after column.
    """
    bias, beta = out, 0  # b is multiplied by beta: without one, what stands in `out` is
    if layers[0].bias is not None:
        bias, beta = torch.cat([layer.bias.detach() for layer in layers]), 1
    if type(norm) is RMSNorm:
        # W (x / rms ⊙ g) + b = (W diag(g)) x / rms + b: all that is left of the norm is a factor.
        weight, eps = COPIES.stacked(layers, norm.weight), norm.eps  # (d_out, D)
        width = weight.shape[1]

        def read(x: Tensor) -> Tensor:
            rms = math.sqrt(x.dot(x).item() / width + eps)
            return torch.addmv(bias, weight, x, beta=beta, alpha=1 / rms, out=out)

        return read
    weight, normalise = COPIES.stacked(layers), normaliser(norm)
    return lambda x: torch.addmv(bias, weight, normalise(x), beta=beta, out=out)


def in_place(norm: nn.Module, *layers: Linear, out: Tensor) -> Reader:
    """The same with the layers' own matrices, of which a large model has no memory for copies."""
    parts = out.split([layer.weight.shape[0] for layer in layers])
    products = [product(layer.weight, layer.bias, part) for layer, part in zip(layers, parts, strict=True)]
    normalise = normaliser(norm)

    def read(x: Tensor) -> Tensor:
        normalised = normalise(x)
        for multiply in products:
            multiply(normalised)
        return out

    return read


def product(weight: Tensor, bias: Tensor | None, out: Tensor | None = None) -> Reader:
    """x -> W x + b, written into `out` if there is one, by a matrix as it is laid out, row after row."""
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
    """Whether oneDNN reads it sooner than BLAS does. PyTorch's BLAS is Intel's MKL: on Intel's CPUs a large model is
    decoded sooner by it, on AMD's by oneDNN (tests/benchmarks/README.md)."""
    suits = weight.is_cpu and weight.dtype == torch.float32 and weight.is_contiguous()
    return suits and weight.nbytes >= LEAST_FOR_ONEDNN and not is_of_intel() and onednn_linear() is not None


@cache
def is_of_intel() -> bool:
    """Whether the CPU is, as far as the system tells."""
    told = CPU_INFO.read_text("utf-8", "replace") if CPU_INFO.exists() else platform.processor()
    return INTEL in told


@cache
def onednn_linear() -> Callable[..., Tensor] | None:
    """PyTorch's way to oneDNN's product; None where this build has none."""
    if not torch.backends.mkldnn.is_available():
        return None
    return getattr(torch.ops.mkldnn, "_linear_pointwise", None)


def adder(layer: Linear, norm: nn.Module | None = None) -> Callable[[Tensor, Tensor], Tensor]:
    """(x, y) -> x + W y + b, or x + norm(W y + b), in the memory of x."""
    multiply = product(layer.weight, layer.bias)
    if norm is not None:
        normalise = normaliser(norm)
        return lambda x, y: x.add_(normalise(multiply(y)))
    if layer.bias is None and not suits_onednn(layer.weight):
        weight = layer.weight.detach()
        return lambda x, y: x.addmv_(weight, y)
    return lambda x, y: x.add_(multiply(y))


def normaliser(layer: nn.Module) -> Callable[[Tensor], Tensor]:
    """The function of a norm over the last axis: of those known here in few operations, else the norm itself."""
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
