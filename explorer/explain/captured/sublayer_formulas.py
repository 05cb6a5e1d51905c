"""Formulas of the values inside attention and feed-forward."""

from collections.abc import Callable
from dataclasses import replace

from explorer.architecture.attention import angles_tap, rotary_attention_factors
from explorer.architecture.residual_stream import input_tap
from explorer.explain.captured.activation import ActivationFormula
from explorer.explain.captured.attention import HeadOutputFormula, PatternFormula, RotationFormula, ScoreFormula
from explorer.explain.captured.formula import Formula
from explorer.explain.captured.linear import CopyFormula, LinearLayerFormula, ProductFormula
from explorer.explain.captured.norms import NORM_LINES, AllHeadsNormFormula, NormFormula
from explorer.explain.source_line import SourceLine
from model.config import ModelConfig

HEADS, ATTENTION, ROPE = (f"model/layers/{file}.py" for file in ("multihead_attention", "attention", "rope"))
GATED, TWO_LAYER = "model/layers/swiglu.py", "model/layers/feed_forward.py"
ROTATIONS = {
    "adjacent": SourceLine(ROPE, "torch.stack((a * cos - b * sin, a * sin + b * cos)"),
    "half_split": SourceLine(ROPE, "return torch.cat((a * cos - b * sin, a * sin + b * cos)"),
}


def projection_formula(vector: str) -> Callable[[ModelConfig, int], LinearLayerFormula]:
    """Return the formula of q, k or v after its linear map, split into heads."""

    def formula(config: ModelConfig, layer: int) -> LinearLayerFormula:
        read, heads = input_tap(config, layer, "attn"), num_vector_heads(config, vector)
        line = SourceLine(HEADS, f"{vector} = self.{vector}(")
        return LinearLayerFormula(vector, read, f"blocks.{layer}.attn.{vector}_proj", line, heads)

    return formula


def head_norm_formula(vector: str) -> Callable[[ModelConfig, int], Formula]:
    """Return the formula of the norm of q or k, per head or over all heads."""

    def formula(config: ModelConfig, layer: int) -> Formula:
        norm, line = f"blocks.{layer}.attn.{vector}_norm", NORM_LINES[config.norm]
        x = projection_formula(vector)(config, layer)
        if config.qk_norm_over == "head":
            return NormFormula(f"{vector}_norm", x, norm, line)
        return AllHeadsNormFormula(
            NormFormula(f"{vector}_norm", replace(x, heads=None), norm, line), num_vector_heads(config, vector), line
        )

    return formula


def num_vector_heads(config: ModelConfig, vector: str) -> int:
    """Return the number of heads of q, k or v."""
    return config.num_heads if vector == "q" else config.kv_heads


def unrotated_qk_formula(vector: str) -> Callable[[ModelConfig, int], Formula]:
    """Return the formula of q or k before rotation, after the head norm if there is one."""

    def formula(config: ModelConfig, layer: int) -> Formula:
        if config.qk_norm:
            return CopyFormula(
                vector, f"blocks.{layer}.attn.{vector}_norm", SourceLine(HEADS, f"{vector} = self.{vector}(")
            )
        return projection_formula(vector)(config, layer)

    return formula


def rotation_formula(vector: str) -> Callable[[ModelConfig, int], Formula]:
    """Return (config, layer) -> the formula of the rotated queries or keys."""

    def formula(config: ModelConfig, layer: int) -> Formula:
        layout = config.rope_layout
        if not config.has_rope(layer):
            return CopyFormula(
                f"{vector}_rot", f"blocks.{layer}.attn.{vector}", SourceLine(HEADS, "q, k = self.q_rot(self.rotate(q")
            )
        x, angles = f"blocks.{layer}.attn.{vector}", angles_tap(config, layer)
        return RotationFormula(
            f"{vector}_rot", x, angles, layout, ROTATIONS[layout], rotary_attention_factors(config, layer)
        )

    return formula


def scores_formula(config: ModelConfig, layer: int) -> Formula:
    """Return the formula of a layer's attention scores."""
    suffix = "_rot" if config.position == "rope" else ""
    q, k = (f"blocks.{layer}.attn.{vector}{suffix}" for vector in "qk")
    return ScoreFormula(q, k, SourceLine(ATTENTION, "return (q / divisor) @ k.transpose(-2, -1)"))


def pattern_formula(config: ModelConfig, layer: int) -> Formula:
    """Return the formula of a layer's attention pattern."""
    line = SourceLine(ATTENTION, "return torch.softmax(scores + penalty, dim=-1)")
    return PatternFormula(f"blocks.{layer}.attn.pattern", f"blocks.{layer}.attn.scores", layer, line)


def head_output_formula(config: ModelConfig, layer: int) -> Formula:
    """Return the formula of the heads' outputs z."""
    line = SourceLine(HEADS, "self.pattern(attention_pattern(softcap(scores, self.score_cap), mask))) @ v")
    return HeadOutputFormula(f"blocks.{layer}.attn.pattern", f"blocks.{layer}.attn.v", line)


def attention_out_formula(config: ModelConfig, layer: int) -> Formula:
    """Return the formula of the attention's output."""
    line = SourceLine(HEADS, "return self.out(self.dropout(self.o_proj(")
    return LinearLayerFormula("out", f"blocks.{layer}.attn.z", f"blocks.{layer}.attn.o_proj", line)


def neuron_input_formula(tap: str, linear_map: str) -> Callable[[ModelConfig, int], Formula]:
    """Return the formula of a linear map of the feed-forward's input."""

    def formula(config: ModelConfig, layer: int) -> Formula:
        line = SourceLine(GATED, f"{tap} = self.{tap}(")
        if not config.is_gated:
            line = SourceLine(TWO_LAYER, "self.activation(self.up(self.up_proj(x)))")
        return LinearLayerFormula(tap, input_tap(config, layer, "ffn"), f"blocks.{layer}.ffn.{linear_map}_proj", line)

    return formula


def gate_formula(config: ModelConfig, layer: int) -> Formula:
    """Return the formula of the feed-forward's gate."""
    return ActivationFormula("gate", f"blocks.{layer}.ffn.gate_pre", config.ffn, SourceLine(GATED, "gate = self.gate("))


def hidden_activation_formula(config: ModelConfig, layer: int) -> Formula:
    """Return the formula of the feed-forward's hidden activations."""
    block = f"blocks.{layer}.ffn"
    if config.is_gated:
        return ProductFormula(
            "hidden", f"{block}.gate", f"{block}.up", SourceLine(GATED, "hidden = self.hidden(gate * up)")
        )
    line = SourceLine(TWO_LAYER, "self.activation(self.up(self.up_proj(x)))")
    return ActivationFormula("hidden", f"{block}.up", config.ffn, line)


def feed_forward_out_formula(config: ModelConfig, layer: int) -> Formula:
    """Return the formula of the feed-forward's output."""
    line = SourceLine(GATED if config.is_gated else TWO_LAYER, "return self.out(self.dropout(self.down_proj(")
    return LinearLayerFormula("out", f"blocks.{layer}.ffn.hidden", f"blocks.{layer}.ffn.down_proj", line)


ATTENTION_TAPS: dict[str, Callable[[ModelConfig, int], Formula]] = {
    "attn.q": unrotated_qk_formula("q"),
    "attn.k": unrotated_qk_formula("k"),
    "attn.v": projection_formula("v"),
    "attn.q_norm": head_norm_formula("q"),
    "attn.k_norm": head_norm_formula("k"),
    "attn.q_rot": rotation_formula("q"),
    "attn.k_rot": rotation_formula("k"),
    "attn.scores": scores_formula,
    "attn.pattern": pattern_formula,
    "attn.z": head_output_formula,
    "attn.out": attention_out_formula,
}
FEED_FORWARD_TAPS: dict[str, Callable[[ModelConfig, int], Formula]] = {
    "ffn.gate_pre": neuron_input_formula("gate_pre", "gate"),
    "ffn.gate": gate_formula,
    "ffn.up": neuron_input_formula("up", "up"),
    "ffn.hidden": hidden_activation_formula,
    "ffn.out": feed_forward_out_formula,
}
