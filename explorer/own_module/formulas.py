"""The reference's formulas, one by one, so that a slip can stand in the place of any: tokens are rows, (T, …)."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

from model.config import ModelConfig
from model.layers.activations import KERNELS
from model.layers.attention import attention_pattern, attention_scores, causal_mask
from model.layers.layernorm import layer_norm
from model.layers.multihead_attention import repeat_heads
from model.layers.rope import ROTATIONS
from model.layers.rope_scaling import rotary_frequencies
from model.layers.sinusoidal import SinusoidalPositionalEmbedding
from model.layers.softcap import softcap

NORMS = "attn_norm", "ffn_norm", "final_norm"
Norm = Callable[[Tensor, Tensor, Tensor | None, float], Tensor]


@dataclass(frozen=True)
class Wiring:
    """What the sublayers of a block read, and what leaves it. Each function has (x, a, f, m,
    norm_1, norm_2): the stream that enters, what attention and feed-forward give out, what the second norm reads, and
    the norms.

    Attributes:
        reads: what the attention reads.
        middle: what the second norm reads.
        then: what the feed-forward reads.
        leaves: what leaves the block.
    """

    reads: Callable[..., Tensor]
    middle: Callable[..., Tensor]
    then: Callable[..., Tensor]
    leaves: Callable[..., Tensor]


PRE_NORM = Wiring(
    reads=lambda x, a, f, m, n1, n2: n1(x),
    middle=lambda x, a, f, m, n1, n2: x + a,
    then=lambda x, a, f, m, n1, n2: n2(m),
    leaves=lambda x, a, f, m, n1, n2: m + f,
)


@dataclass(frozen=True)
class Formulas:
    """Everything that is no product with a weight.

    Attributes:
        embed: (rows of the tokens, the table of positions or None, config) -> the stream's beginning.
        norms: by name, each (x, gain, shift, ε) -> the same shape.
        wiring: of a block.
        split: (T, H d) and H -> (H, T, d).
        merge: the way back.
        positions: T -> those of queries and of keys.
        frequencies: config -> (F,).
        rotate: (x, cos, sin) -> x turned.
        turns_values: whether values are turned, too.
        shared: (G, T, d) and H -> (H, T, d).
        divisor: config -> what scores are divided by.
        scores: (q, k, divisor) -> (H, T, T).
        allowed: T -> (T, T) booleans.
        pattern: (scores, allowed) -> (H, T, T).
        hidden: (gate_pre or None, up, config) -> (T, F).
        linears: of maps whose product is another, by the tap they give: (x, weight, bias) -> that.
        given: (logits) -> what the module gives.
    """

    embed: Callable[[Tensor, Tensor | None, ModelConfig], Tensor]
    norms: Mapping[str, Norm]
    wiring: Wiring
    split: Callable[[Tensor, int], Tensor]
    merge: Callable[[Tensor], Tensor]
    positions: Callable[[int], tuple[Tensor, Tensor]]
    frequencies: Callable[[ModelConfig], Tensor]
    rotate: Callable[[Tensor, Tensor, Tensor], Tensor]
    turns_values: bool
    shared: Callable[[Tensor, int], Tensor]
    divisor: Callable[[ModelConfig], float]
    scores: Callable[[Tensor, Tensor, float], Tensor]
    allowed: Callable[[int], Tensor]
    pattern: Callable[[Tensor, Tensor], Tensor]
    hidden: Callable[[Tensor | None, Tensor, ModelConfig], Tensor]
    given: Callable[[Tensor], Tensor]
    linears: Mapping[str, Callable[[Tensor, Tensor, Tensor | None], Tensor]] = field(default_factory=dict)

    def but(self, **changed: Any) -> "Formulas":
        return replace(self, **changed)

    def with_norm(self, name: str, norm: Norm) -> "Formulas":
        return replace(self, norms={**self.norms, name: norm})


def reference(config: ModelConfig) -> Formulas:
    """Those of a model."""
    norm = rms_norm if config.norm == "rmsnorm" else layer_norm
    return Formulas(
        embed=embed,
        norms=dict.fromkeys(NORMS, norm),
        wiring=PRE_NORM,
        split=lambda x, heads: x.unflatten(-1, (heads, -1)).transpose(0, 1),
        merge=lambda z: z.transpose(0, 1).flatten(-2),
        positions=lambda length: (torch.arange(length), torch.arange(length)),
        frequencies=lambda config: rotary_frequencies(
            config.rope_theta, config.d_head, config.rope_scaling, config.rotary_dim
        ),
        rotate=ROTATIONS[config.rope_layout],
        turns_values=False,
        shared=lambda k, heads: repeat_heads(k[None], heads)[0],
        divisor=lambda config: config.divisor,
        scores=attention_scores,
        allowed=lambda length: causal_mask(length, length),
        pattern=attention_pattern,
        hidden=hidden,
        given=lambda logits: logits,
    )


def rms_norm(x: Tensor, gain: Tensor, shift: Tensor | None, eps: float) -> Tensor:
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps) * gain


def embed(rows: Tensor, table: Tensor | None, config: ModelConfig) -> Tensor:
    rows = rows * config.embedding_scale
    return rows if table is None else rows + table[: len(rows)]


def position_rows(config: ModelConfig, weights: Mapping[str, Tensor]) -> Tensor | None:
    """(C, D), where positions are added."""
    if config.position == "learned":
        return weights["position_embedding.weight"]
    if config.position == "sinusoidal":
        return SinusoidalPositionalEmbedding(config.context_length, config.d_model).table
    return None


def hidden(gate_pre: Tensor | None, up: Tensor, config: ModelConfig) -> Tensor:
    if gate_pre is None:
        return KERNELS[config.ffn](up)
    return KERNELS["silu" if config.ffn == "swiglu" else "gelu_tanh"](gate_pre) * up


def angles(formulas: Formulas, config: ModelConfig, positions: Tensor) -> tuple[Tensor, Tensor]:
    turned = torch.outer(positions.double(), formulas.frequencies(config).double())
    return turned.cos().float(), turned.sin().float()


def attention(
    formulas: Formulas, config: ModelConfig, q: Tensor, k: Tensor, v: Tensor, rotates: bool
) -> dict[str, Tensor]:
    """What the attention makes of the maps' outputs (T, H d): by our taps' names, and "merged", what o_proj reads."""
    found = {
        "q": formulas.split(q, config.num_heads),
        "k": formulas.split(k, config.kv_heads),
        "v": formulas.split(v, config.kv_heads),
    }
    turned = dict(found)
    if rotates:
        for name, positions in zip("qk", formulas.positions(len(q)), strict=True):
            turned[name] = formulas.rotate(found[name], *angles(formulas, config, positions))
        if formulas.turns_values:
            turned["v"] = formulas.rotate(found["v"], *angles(formulas, config, formulas.positions(len(q))[1]))
        found |= {"q_rot": turned["q"], "k_rot": turned["k"]}
    keys, values = (formulas.shared(turned[name], config.num_heads) for name in "kv")
    found["scores"] = formulas.scores(turned["q"], keys, formulas.divisor(config))
    capped = softcap(found["scores"], config.score_cap)
    found["pattern"] = formulas.pattern(capped, formulas.allowed(len(q)))
    found["z"] = found["pattern"] @ values
    found["merged"] = formulas.merge(found["z"])
    return found


def masked(scores: Tensor, allowed: Tensor) -> Tensor:
    return scores.masked_fill(~allowed, -math.inf)
