"""The formula of each tap, for all kinds of models."""

import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from explorer.architecture.formulas import angles_tap, rotary_attention_factors
from explorer.architecture.residual_stream import (
    added_taps,
    block_output_tap,
    has_final_norm,
    norm_input_tap,
    previous_residual_tap,
    sublayer_input_tap,
)
from explorer.explain.captured.attention import (
    AttentionPatternFormula,
    AttentionScoreFormula,
    HeadOutputFormula,
    RotationFormula,
)
from explorer.explain.captured.embedding import (
    EmbeddingFormula,
    LearnedPositionFormula,
    RotaryAngleFormula,
    SinusoidalPositionFormula,
)
from explorer.explain.captured.formulas import (
    NORM_LINES,
    ActivationFormula,
    AdditionFormula,
    AllHeadsNormFormula,
    CopyFormula,
    Formula,
    LinearLayerFormula,
    NormFormula,
    ProductFormula,
    SoftcapFormula,
)
from explorer.explain.source_code import SourceLine
from model.config import ModelConfig

ATTENTION, POSITIONS, FEED_FORWARD = (f"model/layers/{file}.py" for file in ("attention", "positions", "feed_forward"))
ROTATIONS = {
    "adjacent": SourceLine(POSITIONS, "torch.stack((a * cos - b * sin, a * sin + b * cos)"),
    "half_split": SourceLine(POSITIONS, "return torch.cat((a * cos - b * sin, a * sin + b * cos)"),
}


def projection_formula(config: ModelConfig, layer: int, vector: str) -> LinearLayerFormula:
    """Return the formula of q, k or v after its linear map, split into heads."""
    read, heads = sublayer_input_tap(config, layer, "attn"), num_vector_heads(config, vector)
    line = SourceLine(ATTENTION, f"{vector} = self.{vector}(")
    return LinearLayerFormula(vector, read, f"blocks.{layer}.attn.{vector}_proj", line, heads)


def head_norm_formula(config: ModelConfig, layer: int, vector: str) -> Formula:
    """Return the formula of the norm of q or k, per head or over all heads."""
    norm, line = f"blocks.{layer}.attn.{vector}_norm", NORM_LINES[config.norm]
    x = projection_formula(config, layer, vector)
    if config.qk_norm_over == "head":
        return NormFormula(f"{vector}_norm", x, norm, line)
    return AllHeadsNormFormula(
        NormFormula(f"{vector}_norm", replace(x, heads=None), norm, line), num_vector_heads(config, vector), line
    )


def num_vector_heads(config: ModelConfig, vector: str) -> int:
    """Return the number of heads of q, k or v."""
    return config.num_heads if vector == "q" else config.kv_heads


def unrotated_qk_formula(config: ModelConfig, layer: int, vector: str) -> Formula:
    """Return the formula of q or k before rotation, after the head norm if there is one."""
    if config.qk_norm:
        return CopyFormula(
            vector, f"blocks.{layer}.attn.{vector}_norm", SourceLine(ATTENTION, f"{vector} = self.{vector}(")
        )
    return projection_formula(config, layer, vector)


def rotation_formula(config: ModelConfig, layer: int, vector: str) -> Formula:
    """Return the formula of the rotated queries or keys."""
    layout = config.rope_layout
    if not config.has_rope(layer):
        return CopyFormula(
            f"{vector}_rot",
            f"blocks.{layer}.attn.{vector}",
            SourceLine(ATTENTION, "q, k = self.q_rot(self.rotate(q"),
        )
    x, angles = f"blocks.{layer}.attn.{vector}", angles_tap(config, layer)
    return RotationFormula(
        f"{vector}_rot", x, angles, layout, ROTATIONS[layout], rotary_attention_factors(config, layer)
    )


def scores_formula(config: ModelConfig, layer: int) -> Formula:
    """Return the formula of a layer's attention scores."""
    suffix = "_rot" if config.position == "rope" else ""
    q, k = (f"blocks.{layer}.attn.{vector}{suffix}" for vector in "qk")
    return AttentionScoreFormula(q, k, SourceLine(ATTENTION, "return (q / divisor) @ k.transpose(-2, -1)"))


def pattern_formula(config: ModelConfig, layer: int) -> Formula:
    """Return the formula of a layer's attention pattern."""
    line = SourceLine(ATTENTION, "return torch.softmax(scores + penalty, dim=-1)")
    return AttentionPatternFormula(f"blocks.{layer}.attn.pattern", f"blocks.{layer}.attn.scores", layer, line)


def head_output_formula(config: ModelConfig, layer: int) -> Formula:
    """Return the formula of the heads' outputs z."""
    line = SourceLine(ATTENTION, "self.pattern(attention_pattern(softcap(scores, self.score_cap), mask))) @ v")
    return HeadOutputFormula(f"blocks.{layer}.attn.pattern", f"blocks.{layer}.attn.v", line)


def attention_out_formula(config: ModelConfig, layer: int) -> Formula:
    """Return the formula of the attention's output."""
    line = SourceLine(ATTENTION, "return self.out(self.dropout(self.o_proj(")
    return LinearLayerFormula("out", f"blocks.{layer}.attn.z", f"blocks.{layer}.attn.o_proj", line)


def neuron_input_formula(config: ModelConfig, layer: int, tap: str) -> Formula:
    """Return the formula of a linear map of the feed-forward's input."""
    line = SourceLine(FEED_FORWARD, f"{tap} = self.{tap}(")
    if not config.is_gated:
        line = SourceLine(FEED_FORWARD, "self.activation(self.up(self.up_proj(x)))")
    linear_map = f"blocks.{layer}.ffn.{tap.removesuffix('_pre')}_proj"
    return LinearLayerFormula(tap, sublayer_input_tap(config, layer, "ffn"), linear_map, line)


def gate_formula(config: ModelConfig, layer: int) -> Formula:
    """Return the formula of the feed-forward's gate."""
    return ActivationFormula(
        "gate", f"blocks.{layer}.ffn.gate_pre", config.ffn, SourceLine(FEED_FORWARD, "gate = self.gate(")
    )


def hidden_activation_formula(config: ModelConfig, layer: int) -> Formula:
    """Return the formula of the feed-forward's hidden activations."""
    block = f"blocks.{layer}.ffn"
    if config.is_gated:
        return ProductFormula(
            "hidden", f"{block}.gate", f"{block}.up", SourceLine(FEED_FORWARD, "hidden = self.hidden(gate * up)")
        )
    line = SourceLine(FEED_FORWARD, "self.activation(self.up(self.up_proj(x)))")
    return ActivationFormula("hidden", f"{block}.up", config.ffn, line)


def feed_forward_out_formula(config: ModelConfig, layer: int) -> Formula:
    """Return the formula of the feed-forward's output."""
    definition = "SwiGLU" if config.is_gated else "FeedForward"
    line = SourceLine(FEED_FORWARD, "return self.out(self.dropout(self.down_proj(", definition)
    return LinearLayerFormula("out", f"blocks.{layer}.ffn.hidden", f"blocks.{layer}.ffn.down_proj", line)


LM, BLOCK, TABLE = "model/transformer_lm.py", "model/layers/transformer_block.py", "model/layers/basic_layers.py"


def get_formula(config: ModelConfig, name: str) -> Formula:
    """Return the formula of a captured value; KeyError if there is none."""
    in_block = re.fullmatch(r"blocks\.(\d+)\.(.+)", name)
    formulas = IN_BLOCKS if in_block else OUTSIDE
    tap = in_block[2] if in_block else name
    if tap not in formulas:
        raise KeyError(f"no formula is known for {name!r}; it belongs in explorer/explain/captured/tap_formulas.py")
    return formulas[tap](config, int(in_block[1])) if in_block else formulas[tap](config)


def embedding_formula(config: ModelConfig) -> Formula:
    """Return the formula of the embedding."""
    positions = config.position in ("sinusoidal", "learned")
    line = SourceLine(TABLE, "return self.weight[token_ids]")
    if config.embedding_scale != 1:
        line = SourceLine(LM, "x = x * self.config.embedding_scale")
    if positions:
        line = SourceLine(LM, "x = (x + self.position_embed(")
    return EmbeddingFormula(positions, line)


def position_embedding_formula(config: ModelConfig) -> Formula:
    """Return the formula of the position embedding."""
    if config.position == "learned":
        return LearnedPositionFormula(SourceLine(TABLE, "return self.weight[token_ids]"))
    return SinusoidalPositionFormula(
        SourceLine("model/layers/positions.py", "return torch.stack((angles.sin(), angles.cos())")
    )


def final_norm_formula(config: ModelConfig) -> Formula:
    """Return the formula of the final norm; a copy of the stream if there is none."""
    stream = block_output_tap(config, config.num_layers - 1)
    if not has_final_norm(config):
        return CopyFormula("final_norm", stream, SourceLine(LM, "self.final_norm(x)"))
    return NormFormula("final_norm", CopyFormula("x", stream, LOGITS), "final_norm", NORM_LINES[config.norm])


LOGITS = SourceLine(LM, "logits = softcap(self.lm_head(x)")


def logits_formula(config: ModelConfig) -> Formula:
    """Return the formula of the logits."""
    plain = LinearLayerFormula("logit", "final_norm", "lm_head", LOGITS)
    return plain if config.logit_cap is None else SoftcapFormula("logit", plain, config.logit_cap, LOGITS)


def resid_pre_formula(config: ModelConfig, layer: int) -> Formula:
    """Return the formula of the residual stream before a block."""
    if layer == 0:
        return CopyFormula("resid_pre", "embed", SourceLine(LM, "x = self.dropout(self.embed_tokens("))
    return CopyFormula("resid_pre", block_output_tap(config, layer - 1), SourceLine(LM, "x = block(x, turns"))


def stream_sum_formula(config: ModelConfig, layer: int, name: str) -> Formula:
    """Return the formula of a stream value: the previous value plus the outputs of sublayers."""
    value = f"blocks.{layer}.{name}"
    terms = previous_residual_tap(config, value), *added_taps(config, value)
    return AdditionFormula(name, terms, SourceLine(BLOCK, SUMS[config.norm_placement, name]))


# where the norms stand, and a value of the stream -> the line that adds it up
SUMS = {
    ("pre", "resid_mid"): "self.resid_mid(x + self.attn(self.attn_norm(x), ",
    ("pre", "resid_post"): "self.resid_post(x + self.ffn(self.ffn_norm(x))",
    ("post", "resid_mid"): "self.resid_mid(x + self.attn(x, ",
    ("post", "resid_post"): "self.resid_post(x + self.ffn(x)",
    ("parallel", "resid_post"): "self.resid_post(x + fetched + self.ffn(self.ffn_norm(x))",
    ("shared", "resid_post"): "self.resid_post(x + fetched + self.ffn(y)",
    ("sandwich", "resid_mid"): "self.resid_mid(x + self.attn_out_norm(fetched)",
    ("sandwich", "resid_post"): "self.resid_post(x + self.ffn_out_norm(self.ffn(self.ffn_norm(x)))",
    ("output", "resid_mid"): "self.resid_mid(x + self.attn_norm(self.attn(x, ",
    ("output", "resid_post"): "self.resid_post(x + self.ffn_norm(self.ffn(x))",
}


def block_norm_formula(config: ModelConfig, layer: int, name: str) -> Formula:
    """Return the formula of one of a block's norms: of the input or output of a sublayer, or of the stream."""
    norm, line = f"blocks.{layer}.{name}", NORM_LINES[config.norm]
    return NormFormula(name, CopyFormula("x", norm_input_tap(config, norm), line), norm, line)


ROPE_ANGLES = SourceLine("model/layers/positions.py", "return positions.double()[..., None] * frequencies")
OUTSIDE: dict[str, Callable[[ModelConfig], Formula]] = {
    "embed": embedding_formula,
    "position_embed": position_embedding_formula,
    "rope.angles": lambda config: RotaryAngleFormula(ROPE_ANGLES),
    "local_rope.angles": lambda config: RotaryAngleFormula(ROPE_ANGLES, local=True),
    "final_norm": final_norm_formula,
    "logits": logits_formula,
}
IN_BLOCKS: dict[str, Callable[[ModelConfig, int], Formula]] = {
    "resid_pre": resid_pre_formula,
    **{name: partial(stream_sum_formula, name=name) for name in ("resid_mid", "resid_post")},
    **{
        name: partial(block_norm_formula, name=name)
        for name in ("attn_norm", "attn_out_norm", "ffn_norm", "ffn_out_norm")
    },
    **{f"attn.{vector}": partial(unrotated_qk_formula, vector=vector) for vector in "qk"},
    "attn.v": partial(projection_formula, vector="v"),
    **{f"attn.{vector}_norm": partial(head_norm_formula, vector=vector) for vector in "qk"},
    **{f"attn.{vector}_rot": partial(rotation_formula, vector=vector) for vector in "qk"},
    "attn.scores": scores_formula,
    "attn.pattern": pattern_formula,
    "attn.z": head_output_formula,
    "attn.out": attention_out_formula,
    **{f"ffn.{tap}": partial(neuron_input_formula, tap=tap) for tap in ("gate_pre", "up")},
    "ffn.gate": gate_formula,
    "ffn.hidden": hidden_activation_formula,
    "ffn.out": feed_forward_out_formula,
}
