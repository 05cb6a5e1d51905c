"""The reference's formulas, one by one, so that a slip can stand in the place of any: tokens are rows, (T, …)."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from explorer.own_module.norms import LAYER_NORM, RMS_NORM, Norm
from explorer.own_module.wiring import WIRINGS, Value, Wiring
from model.config import ModelConfig
from model.layers.activations import KERNELS
from model.layers.attention import attention_pattern, attention_scores, causal_mask
from model.layers.multihead_attention import repeat_heads
from model.layers.rope import ROTATIONS
from model.layers.rope_scaling import rotary_frequencies, rotary_scales
from model.layers.sinusoidal import SinusoidalPositionalEmbedding
from model.layers.softcap import softcap

NORMS = "attn_norm", "ffn_norm", "final_norm"
Use = Callable[[Tensor, Callable[[Tensor], Tensor]], Tensor]


@dataclass(frozen=True)
class Hidden:
    """What a feed-forward's last map reads, piece by piece.

    Attributes:
        activation: of the gate, or of all where there is none.
        taken: (gate, up) -> what the activation is taken of, and what that is joined with.
        joined: (what the activation gives, the other) -> (T, F).
    """

    activation: Callable[[Tensor], Tensor]
    taken: Callable[[Tensor, Tensor], tuple[Tensor, Tensor]] = lambda gate, up: (gate, up)
    joined: Callable[[Tensor, Tensor], Tensor] = lambda active, other: active * other

    def __call__(self, gate_pre: Tensor | None, up: Tensor) -> Tensor:
        if gate_pre is None:
            return self.activation(up)
        first, other = self.taken(gate_pre, up)
        return self.joined(self.activation(first), other)

    def but(self, **changed: Any) -> "Hidden":
        return replace(self, **changed)


@dataclass(frozen=True)
class Formulas:
    """Everything that is no product with a weight.

    Attributes:
        embed: (rows of the tokens, the table of positions or None, config) -> the stream's beginning.
        table: the module whose weight has the tokens' rows.
        norms: by name.
        wiring: of a block.
        taken: what queries, keys and values give -> the three in the order in which they are used.
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
        fetched: (pattern, values) -> (H, T, d).
        hidden: (gate_pre or None, up) -> (T, F).
        linears: of maps whose product is another, by the tap they give: (x, its whole name, all weights) -> that.
        reads: of maps that read something else, by the tap they give: what they read, see `wiring`.
        uses: of values that are used as something else, by their taps: (value, its map) -> what is used.
        given: (logits) -> what the module gives.
    """

    embed: Callable[[Tensor, Tensor | None, ModelConfig], Tensor]
    norms: Mapping[str, Norm]
    wiring: Wiring
    taken: Callable[[Tensor, Tensor, Tensor], tuple[Tensor, Tensor, Tensor]]
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
    fetched: Callable[[Tensor, Tensor], Tensor]
    hidden: Hidden
    given: Callable[[Tensor], Tensor]
    table: str = "token_embedding"
    linears: Mapping[str, Callable[[Tensor, str, Mapping[str, Tensor]], Tensor]] = field(default_factory=dict)
    reads: Mapping[str, Value] = field(default_factory=dict)
    uses: Mapping[str, Use] = field(default_factory=dict)

    def but(self, **changed: Any) -> "Formulas":
        return replace(self, **changed)

    def with_norm(self, name: str, norm: Norm) -> "Formulas":
        return replace(self, norms={**self.norms, name: norm})


def reference(config: ModelConfig) -> Formulas:
    """Those of a model."""
    norm = RMS_NORM if config.norm == "rmsnorm" else LAYER_NORM
    return Formulas(
        embed=embed,
        norms=dict.fromkeys(NORMS, norm),
        wiring=WIRINGS[config.norm_placement],
        taken=lambda q, k, v: (q, k, v),
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
        fetched=lambda pattern, values: pattern @ values,
        hidden=Hidden(KERNELS[{"swiglu": "silu", "geglu": "gelu_tanh"}.get(config.ffn, config.ffn)]),
        given=lambda logits: logits,
    )


def linear(x: Tensor, name: str, weights: Mapping[str, Tensor]) -> Tensor:
    return F.linear(x, weights[f"{name}.weight"], weights.get(f"{name}.bias"))


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


def angles(formulas: Formulas, config: ModelConfig, positions: Tensor) -> tuple[Tensor, Tensor]:
    turned = torch.outer(positions.double(), formulas.frequencies(config).double())
    scales = rotary_scales(2 * turned.shape[-1], config.rope_scaling, config.rotary_dim)
    return (turned.cos() * scales).float(), (turned.sin() * scales).float()


def attention(
    formulas: Formulas, config: ModelConfig, q: Tensor, k: Tensor, v: Tensor, rotates: bool
) -> dict[str, Tensor]:
    """What the attention makes of the maps' outputs (T, H d): by our taps' names, and "merged", what o_proj reads."""

    def used(name: str, value: Tensor) -> Tensor:
        use = formulas.uses.get(f"attn.{name}")
        return value if use is None else use(value, None)

    q, k, v = formulas.taken(q, k, v)
    found = {
        "q": formulas.split(q, config.num_heads),
        "k": formulas.split(k, config.kv_heads),
        "v": formulas.split(v, config.kv_heads),
    }
    turned = dict(found)
    if rotates:
        for name, positions in zip("qk", formulas.positions(len(q)), strict=True):
            turned[name] = used(f"{name}_rot", formulas.rotate(found[name], *angles(formulas, config, positions)))
        if formulas.turns_values:
            turned["v"] = formulas.rotate(found["v"], *angles(formulas, config, torch.arange(len(v))))
        found |= {"q_rot": turned["q"], "k_rot": turned["k"]}
    keys, values = (formulas.shared(turned[name], config.num_heads) for name in "kv")
    found["scores"] = used("scores", formulas.scores(turned["q"], keys, formulas.divisor(config)))
    capped = softcap(found["scores"], config.score_cap)
    found["pattern"] = used("pattern", formulas.pattern(capped, formulas.allowed(len(q))))
    found["z"] = used("z", formulas.fetched(found["pattern"], values))
    found["merged"] = formulas.merge(found["z"])
    return found


def masked(scores: Tensor, allowed: Tensor) -> Tensor:
    return scores.masked_fill(~allowed, -math.inf)
