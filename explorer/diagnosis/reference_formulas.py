"""The reference's formulas, each replaceable by a bug: norms in pieces, a block's dataflow; tokens are rows."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from explorer.errors import UserError
from explorer.translations import _
from model.config import ModelConfig
from model.layers.attention import attention_pattern, attention_scores, causal_mask, repeat_heads, softcap
from model.layers.feed_forward import KERNELS
from model.layers.positions import (
    ROTATIONS,
    SinusoidalPositionalEmbedding,
    rotary_attention_factors,
    rotary_frequencies,
)


@dataclass(frozen=True)
class NormFormulaPieces:
    """The norm c / root(mean c², ε) · g + β, where c = x or x − mean x.

    Attributes:
        scaled: (c, gain) -> the dividend, where the gain is applied before the division.
        centre: x -> c.
        measured: (x, c) -> the values to be squared.
        mean: squares -> (…, 1).
        epsilon: (ε of the config, D) -> the ε used.
        root: (mean, ε) -> the divisor.
        applied: (quotient, gain, shift or None) -> the norm's output.
        times: number of times the norm is applied.
        weights: full name of the norm -> that of the norm whose gain and shift it uses.
    """

    centre: Callable[[Tensor], Tensor]
    applied: Callable[[Tensor, Tensor, Tensor | None], Tensor]
    measured: Callable[[Tensor, Tensor], Tensor] = lambda x, c: c
    mean: Callable[[Tensor], Tensor] = lambda squares: squares.mean(-1, keepdim=True)
    epsilon: Callable[[float, int], float] = lambda eps, width: eps
    root: Callable[[Tensor, float], Tensor] = lambda mean, eps: torch.sqrt(mean + eps)

    scaled: Callable[[Tensor, Tensor], Tensor] = lambda x, gain: x
    times: int = 1
    weights: Callable[[str], str] = lambda name: name

    def __call__(self, x: Tensor, gain: Tensor, shift: Tensor | None, eps: float) -> Tensor:
        for _time in range(self.times):
            c = self.scaled(self.centre(x), gain)
            divisor = self.root(self.mean(self.measured(x, c).square()), self.epsilon(eps, x.shape[-1]))
            x = self.applied(c / divisor, gain, shift)
        return x


def subtract_mean(x: Tensor) -> Tensor:
    """Return the vectors minus their means."""
    return x - x.mean(-1, keepdim=True)


def identity(x: Tensor) -> Tensor:
    """Return the argument."""
    return x


def with_gain(y: Tensor, gain: Tensor, shift: Tensor | None) -> Tensor:
    """Return the normalised vectors times the gain, plus the shift if there is one."""
    return y * gain if shift is None else y * gain + shift


RMS_NORM = NormFormulaPieces(centre=identity, applied=with_gain)
LAYER_NORM = NormFormulaPieces(centre=subtract_mean, applied=with_gain)


Value = Callable[[Any], Tensor]  # of the `BlockValues` of a block


@dataclass(frozen=True)
class BlockDataflow:
    """The values around the sublayers, each as a function of those before it.

    Attributes:
        attn_input: the attention's input.
        first_norm_input: the first norm's input.
        second_norm_input: the second norm's input.
        ffn_input: the feed-forward's input.
        block_output: the block's output.
        block_input: the block's input.
    """

    attn_input: Value
    first_norm_input: Value
    second_norm_input: Value
    ffn_input: Value
    block_output: Value
    block_input: Value = lambda b: b.before


PRE = BlockDataflow(
    attn_input=lambda b: b.n1(b.x),
    first_norm_input=lambda b: b.x,
    second_norm_input=lambda b: b.x + b.a,
    ffn_input=lambda b: b.n2(b.m),
    block_output=lambda b: b.m + b.f,
)
POST = BlockDataflow(
    attn_input=lambda b: b.x,
    first_norm_input=lambda b: b.x + b.a,
    second_norm_input=lambda b: b.n1(b.x + b.a) + b.f,
    ffn_input=lambda b: b.n1(b.x + b.a),
    block_output=lambda b: b.n2(b.m),
)
OUTPUT = BlockDataflow(
    attn_input=lambda b: b.x,
    first_norm_input=lambda b: b.a,
    second_norm_input=lambda b: b.f,
    ffn_input=lambda b: b.x + b.n1(b.a),
    block_output=lambda b: b.x + b.n1(b.a) + b.n2(b.f),
)
PARALLEL = BlockDataflow(
    attn_input=lambda b: b.n1(b.x),
    first_norm_input=lambda b: b.x,
    second_norm_input=lambda b: b.x,
    ffn_input=lambda b: b.n2(b.x),
    block_output=lambda b: b.x + b.a + b.f,
)
DATAFLOWS = {"pre": PRE, "post": POST, "output": OUTPUT, "parallel": PARALLEL}  # by the config's norm_placement

# Taps of the values around the sublayers; values without a tap are not compared.
ROLES: dict[str, dict[str, str]] = {
    "pre": {
        "block_input": "resid_pre",
        "attn_input": "attn_norm",
        "second_norm_input": "resid_mid",
        "ffn_input": "ffn_norm",
        "block_output": "resid_post",
    },
    "post": {
        "attn_input": "resid_pre",
        "first_norm_input": "resid_mid",
        "ffn_input": "attn_norm",
        "second_norm_input": "resid_post",
        "block_output": "ffn_norm",
    },
    "output": {"attn_input": "resid_pre", "ffn_input": "resid_mid", "block_output": "resid_post"},
    "parallel": {
        "block_input": "resid_pre",
        "attn_input": "attn_norm",
        "ffn_input": "ffn_norm",
        "block_output": "resid_post",
    },
}
ATTENTION = "attn.q", "attn.k", "attn.v", "attn.z", "attn.out"
FEED_FORWARD = "ffn.gate_pre", "ffn.up", "ffn.hidden", "ffn.out"
VALUE_ORDER = {  # values of a block, or what they are around the sublayers
    "pre": ("block_input", "attn_input", *ATTENTION, "second_norm_input", "ffn_input", *FEED_FORWARD, "block_output"),
    "post": (
        "attn_input",
        *ATTENTION,
        "first_norm_input",
        "ffn_input",
        *FEED_FORWARD,
        "second_norm_input",
        "block_output",
    ),
    "output": ("attn_input", *ATTENTION, "attn_norm", "ffn_input", *FEED_FORWARD, "ffn_norm", "block_output"),
    "parallel": ("block_input", "attn_input", *ATTENTION, "ffn_input", *FEED_FORWARD, "block_output"),
}


def check_supported(config: ModelConfig):
    """Raise a UserError if the config has settings that a diagnosis does not support."""
    if config.norm_placement not in DATAFLOWS:
        raise UserError(
            _(
                "Cannot diagnose the norm placement {placement}. Supported: {known}.",
                placement=config.norm_placement,
                known=", ".join(DATAFLOWS),
            )
        )
    has = {"qk_norm": config.qk_norm, "windows": any(config.windows), "rotary_layers": not all(config.rotary_layers)}
    if any(has.values()):
        settings = ", ".join(name for name in has if has[name])
        raise UserError(
            _("Cannot diagnose a model with these settings: {settings}. Use one without them.", settings=settings)
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


@dataclass(frozen=True)
class ModelFormulas:
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
    norms: Mapping[str, NormFormulaPieces]
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

    def with_norm(self, name: str, norm: NormFormulaPieces) -> "ModelFormulas":
        """Return the formulas with one norm replaced."""
        return replace(self, norms={**self.norms, name: norm})


def reference_formulas(config: ModelConfig) -> ModelFormulas:
    """Return the formulas of a model of this config."""
    norm = RMS_NORM if config.norm == "rmsnorm" else LAYER_NORM
    return ModelFormulas(
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
        return SinusoidalPositionalEmbedding(config.d_model)(torch.arange(config.context_length))
    return None


def rotation_tables(formulas: ModelFormulas, config: ModelConfig, positions: Tensor) -> tuple[Tensor, Tensor]:
    """Return cos and sin (T, F) of the rotation angles at some positions."""
    phases = torch.outer(positions.double(), formulas.frequencies(config).double())
    scales = rotary_attention_factors(2 * phases.shape[-1], config.rope_scaling, config.rotary_dim)
    return (phases.cos() * scales).float(), (phases.sin() * scales).float()


def attention_values(
    formulas: ModelFormulas, config: ModelConfig, q: Tensor, k: Tensor, v: Tensor, rotates: bool
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


@dataclass(frozen=True)
class KnownBug:
    """A common implementation bug: a change to one of the reference's formulas.

    Attributes:
        name: an identifier.
        text: a description, translated when displayed.
        values: values of the placeholders in `text`, translated likewise.
        first_tap: the first tap that it changes, without the layer, or its role in the block (see `dataflow`); "" for
            the tap at which it is searched.
        visible_at: recorded taps, or their roles, at which it can first be visible.
        change: (formulas, the tap at which it is visible) -> the formulas with the bug.
        applies_to: whether a model of a config can have it.
    """

    name: str
    text: str
    first_tap: str
    visible_at: tuple[str, ...]
    change: Callable[[ModelFormulas, str], ModelFormulas]
    applies_to: Callable[[ModelConfig], bool] = lambda config: True
    values: tuple[tuple[str, str], ...] = ()
