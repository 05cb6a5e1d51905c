"""The reference's formulas, each replaceable by a bug; tokens are rows, (T, …)."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from explorer.diagnosis.block_dataflow import DATAFLOWS, BlockDataflow, Value
from explorer.diagnosis.norm_pieces import LAYER_NORM, RMS_NORM, NormPieces
from model.config import ModelConfig
from model.layers.attention import attention_pattern, attention_scores, causal_mask, repeat_heads, softcap
from model.layers.feed_forward import KERNELS
from model.layers.positions import (
    ROTATIONS,
    SinusoidalPositionalEmbedding,
    rotary_attention_factors,
    rotary_frequencies,
)

NORMS = "attn_norm", "ffn_norm", "final_norm"
Use = Callable[[Tensor, Callable[[Tensor], Tensor]], Tensor]


@dataclass(frozen=True)
class FeedForwardHiddenFormula:
    """The input of a feed-forward's last map, in replaceable pieces.

    Attributes:
        activation: of the gate, or of everything where there is no gate.
        gate_and_up: (gate, up) -> the activation's input, and the value that its output is joined with.
        joined: (the activation's output, the other) -> (T, F).
    """

    activation: Callable[[Tensor], Tensor]
    gate_and_up: Callable[[Tensor, Tensor], tuple[Tensor, Tensor]] = lambda gate, up: (gate, up)
    joined: Callable[[Tensor, Tensor], Tensor] = lambda active, other: active * other

    def __call__(self, gate_pre: Tensor | None, up: Tensor) -> Tensor:
        if gate_pre is None:
            return self.activation(up)
        first, other = self.gate_and_up(gate_pre, up)
        return self.joined(self.activation(first), other)

    def replace(self, **changed: Any) -> "FeedForwardHiddenFormula":
        return replace(self, **changed)


@dataclass(frozen=True)
class Formulas:
    """All computations of a model except products with weights.

    Attributes:
        embed: (token rows, table of positions or None, config) -> the initial residual stream.
        table: the module whose weight has the token rows.
        norms: by name.
        dataflow: of a block.
        qkv: (queries, keys, values) as projected -> the three as used.
        split: (T, H d) and H -> (H, T, d).
        merge: the inverse.
        positions: T -> the positions of queries and of keys.
        frequencies: config -> (F,).
        rotate: (x, cos, sin) -> x rotated.
        rotates_values: whether values are rotated, too.
        repeat_kv: (G, T, d) and H -> (H, T, d).
        divisor: config -> the divisor of scores.
        scores: (q, k, divisor) -> (H, T, T).
        mask: T -> (T, T) booleans.
        pattern: (scores, allowed) -> (H, T, T).
        weighted_sum: (pattern, values) -> (H, T, d).
        hidden: (gate_pre or None, up) -> (T, F).
        linears: replaced products by output tap: (x, full name of the map, all weights) -> the output.
        linear_inputs: replaced inputs of maps by output tap, see `dataflow`.
        uses: replaced uses of values by tap: (value, its map) -> the value used.
        output: logits -> the module's output.
    """

    embed: Callable[[Tensor, Tensor | None, ModelConfig], Tensor]
    norms: Mapping[str, NormPieces]
    dataflow: BlockDataflow
    qkv: Callable[[Tensor, Tensor, Tensor], tuple[Tensor, Tensor, Tensor]]
    split: Callable[[Tensor, int], Tensor]
    merge: Callable[[Tensor], Tensor]
    positions: Callable[[int], tuple[Tensor, Tensor]]
    frequencies: Callable[[ModelConfig], Tensor]
    rotate: Callable[[Tensor, Tensor, Tensor], Tensor]
    rotates_values: bool
    repeat_kv: Callable[[Tensor, int], Tensor]
    divisor: Callable[[ModelConfig], float]
    scores: Callable[[Tensor, Tensor, float], Tensor]
    mask: Callable[[int], Tensor]
    pattern: Callable[[Tensor, Tensor], Tensor]
    weighted_sum: Callable[[Tensor, Tensor], Tensor]
    hidden: FeedForwardHiddenFormula
    output: Callable[[Tensor], Tensor]
    table: str = "token_embedding"
    linears: Mapping[str, Callable[[Tensor, str, Mapping[str, Tensor]], Tensor]] = field(default_factory=dict)
    linear_inputs: Mapping[str, Value] = field(default_factory=dict)
    uses: Mapping[str, Use] = field(default_factory=dict)

    def replace(self, **changed: Any) -> "Formulas":
        return replace(self, **changed)

    def with_norm(self, name: str, norm: NormPieces) -> "Formulas":
        """Return the formulas with one norm replaced."""
        return replace(self, norms={**self.norms, name: norm})


def reference_formulas(config: ModelConfig) -> Formulas:
    """Return the formulas of a model of this config."""
    norm = RMS_NORM if config.norm == "rmsnorm" else LAYER_NORM
    return Formulas(
        embed=embed,
        norms=dict.fromkeys(NORMS, norm),
        dataflow=DATAFLOWS[config.norm_placement],
        qkv=lambda q, k, v: (q, k, v),
        split=lambda x, heads: x.unflatten(-1, (heads, -1)).transpose(0, 1),
        merge=lambda z: z.transpose(0, 1).flatten(-2),
        positions=lambda length: (torch.arange(length), torch.arange(length)),
        frequencies=lambda config: rotary_frequencies(
            config.rope_theta, config.d_head, config.rope_scaling, config.rotary_dim
        ),
        rotate=ROTATIONS[config.rope_layout],
        rotates_values=False,
        repeat_kv=lambda k, heads: repeat_heads(k[None], heads)[0],
        divisor=lambda config: config.divisor,
        scores=attention_scores,
        mask=lambda length: causal_mask(length, length),
        pattern=attention_pattern,
        weighted_sum=lambda pattern, values: pattern @ values,
        hidden=FeedForwardHiddenFormula(KERNELS[{"swiglu": "silu", "geglu": "gelu_tanh"}.get(config.ffn, config.ffn)]),
        output=lambda logits: logits,
    )


def linear(x: Tensor, name: str, weights: Mapping[str, Tensor]) -> Tensor:
    """Return W x + b for x (…, in) with the weight and bias of a map."""
    return F.linear(x, weights[f"{name}.weight"], weights.get(f"{name}.bias"))


def embed(rows: Tensor, table: Tensor | None, config: ModelConfig) -> Tensor:
    """Return the initial residual stream (T, D)."""
    rows = rows * config.embedding_scale
    return rows if table is None else rows + table[: len(rows)]


def position_embedding_rows(config: ModelConfig, weights: Mapping[str, Tensor]) -> Tensor | None:
    """Return the vectors (C, D) that are added for positions; None where none are."""
    if config.position == "learned":
        return weights["position_embedding.weight"]
    if config.position == "sinusoidal":
        return SinusoidalPositionalEmbedding(config.context_length, config.d_model).table
    return None


def rotation_tables(formulas: Formulas, config: ModelConfig, positions: Tensor) -> tuple[Tensor, Tensor]:
    """Return cos and sin (T, F) of the rotation angles at some positions."""
    phases = torch.outer(positions.double(), formulas.frequencies(config).double())
    scales = rotary_attention_factors(2 * phases.shape[-1], config.rope_scaling, config.rotary_dim)
    return (phases.cos() * scales).float(), (phases.sin() * scales).float()


def attention_values(
    formulas: Formulas, config: ModelConfig, q: Tensor, k: Tensor, v: Tensor, rotates: bool
) -> dict[str, Tensor]:
    """Compute the attention from the projections (T, H d).

    Returns:
        Values by our taps' names, and "merged", the input of o_proj.
    """

    def apply_use(name: str, value: Tensor) -> Tensor:
        use = formulas.uses.get(f"attn.{name}")
        return value if use is None else use(value, None)

    q, k, v = formulas.qkv(q, k, v)
    values_by_tap = {
        "q": formulas.split(q, config.num_heads),
        "k": formulas.split(k, config.kv_heads),
        "v": formulas.split(v, config.kv_heads),
    }
    rotated = dict(values_by_tap)
    if rotates:
        for name, positions in zip("qk", formulas.positions(len(q)), strict=True):
            rotated[name] = apply_use(
                f"{name}_rot", formulas.rotate(values_by_tap[name], *rotation_tables(formulas, config, positions))
            )
        if formulas.rotates_values:
            rotated["v"] = formulas.rotate(values_by_tap["v"], *rotation_tables(formulas, config, torch.arange(len(v))))
        values_by_tap |= {"q_rot": rotated["q"], "k_rot": rotated["k"]}
    keys, values = (formulas.repeat_kv(rotated[name], config.num_heads) for name in "kv")
    values_by_tap["scores"] = apply_use("scores", formulas.scores(rotated["q"], keys, formulas.divisor(config)))
    capped = softcap(values_by_tap["scores"], config.score_cap)
    values_by_tap["pattern"] = apply_use("pattern", formulas.pattern(capped, formulas.mask(len(q))))
    values_by_tap["z"] = apply_use("z", formulas.weighted_sum(values_by_tap["pattern"], values))
    values_by_tap["merged"] = formulas.merge(values_by_tap["z"])
    return values_by_tap


def mask_scores(scores: Tensor, allowed: Tensor) -> Tensor:
    """Return the scores with −∞ where the mask forbids attention."""
    return scores.masked_fill(~allowed, -math.inf)
