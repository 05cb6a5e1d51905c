"""The formulas of what attention and the feed-forward compute inside a block."""

from collections.abc import Callable
from dataclasses import replace

from explorer.architecture.attention import angles_of, rotation_scales
from explorer.architecture.stream import read_by
from explorer.explain.captured.activation import Activation
from explorer.explain.captured.attention import Fetched, Pattern, Rotation, Scores
from explorer.explain.captured.formula import Formula
from explorer.explain.captured.linear import Copy, Linear, Product
from explorer.explain.captured.norms import NORM_LINES, Norm, OverHeads
from explorer.explain.source import Source
from model.config import ModelConfig

HEADS, ATTENTION, ROPE = (f"model/layers/{file}.py" for file in ("multihead_attention", "attention", "rope"))
GATED, TWO_LAYER = "model/layers/swiglu.py", "model/layers/feed_forward.py"
ROTATIONS = {
    "adjacent": Source(ROPE, "torch.stack((a * cos - b * sin, a * sin + b * cos)"),
    "half_split": Source(ROPE, "return torch.cat((a * cos - b * sin, a * sin + b * cos)"),
}


def projected(part: str) -> Callable[[ModelConfig, int], Linear]:
    """q, k or v as its linear map leaves it, split into heads."""

    def formula(config: ModelConfig, layer: int) -> Linear:
        read, heads = read_by(config, layer, "attn"), heads_of(config, part)
        line = Source(HEADS, f"{part} = self.{part}(")
        return Linear(part, read, f"blocks.{layer}.attn.{part}_proj", line, heads)

    return formula


def normed_head(part: str) -> Callable[[ModelConfig, int], Formula]:
    """The norm of every head's q or k, or of all heads' together."""

    def formula(config: ModelConfig, layer: int) -> Formula:
        norm, line = f"blocks.{layer}.attn.{part}_norm", NORM_LINES[config.norm]
        x = projected(part)(config, layer)
        if config.qk_norm_over == "head":
            return Norm(f"{part}_norm", x, norm, line)
        return OverHeads(Norm(f"{part}_norm", replace(x, heads=None), norm, line), heads_of(config, part), line)

    return formula


def heads_of(config: ModelConfig, part: str) -> int:
    """How many heads of q, k or v there are."""
    return config.num_heads if part == "q" else config.kv_heads


def compared(part: str) -> Callable[[ModelConfig, int], Formula]:
    """q or k before any rotation: the normalised one where heads are normalised."""

    def formula(config: ModelConfig, layer: int) -> Formula:
        if config.qk_norm:
            return Copy(part, f"blocks.{layer}.attn.{part}_norm", Source(HEADS, f"{part} = self.{part}("))
        return projected(part)(config, layer)

    return formula


def rotated(part: str) -> Callable[[ModelConfig, int], Formula]:
    def formula(config: ModelConfig, layer: int) -> Formula:
        layout = config.rope_layout
        if not config.rotates(layer):
            return Copy(f"{part}_rot", f"blocks.{layer}.attn.{part}", Source(HEADS, "q, k = self.q_rot(self.rotate(q"))
        x, angles = f"blocks.{layer}.attn.{part}", angles_of(config, layer)
        return Rotation(f"{part}_rot", x, angles, layout, ROTATIONS[layout], rotation_scales(config, layer))

    return formula


def scores(config: ModelConfig, layer: int) -> Formula:
    turned = "_rot" if config.position == "rope" else ""
    q, k = (f"blocks.{layer}.attn.{part}{turned}" for part in "qk")
    return Scores(q, k, Source(ATTENTION, "return (q / divisor) @ k.transpose(-2, -1)"))


def pattern(config: ModelConfig, layer: int) -> Formula:
    line = Source(ATTENTION, "return torch.softmax(scores + penalty, dim=-1)")
    return Pattern(f"blocks.{layer}.attn.pattern", f"blocks.{layer}.attn.scores", layer, line)


def fetched(config: ModelConfig, layer: int) -> Formula:
    line = Source(HEADS, "self.pattern(attention_pattern(softcap(scores, self.score_cap), mask))) @ v")
    return Fetched(f"blocks.{layer}.attn.pattern", f"blocks.{layer}.attn.v", line)


def attention_out(config: ModelConfig, layer: int) -> Formula:
    line = Source(HEADS, "return self.out(self.dropout(self.o_proj(")
    return Linear("out", f"blocks.{layer}.attn.z", f"blocks.{layer}.attn.o_proj", line)


def neuron_input(tap: str, part: str) -> Callable[[ModelConfig, int], Formula]:
    """What a linear map makes of what the feed-forward reads."""

    def formula(config: ModelConfig, layer: int) -> Formula:
        line = Source(GATED, f"{tap} = self.{tap}(")
        if not config.is_gated:
            line = Source(TWO_LAYER, "self.activation(self.up(self.up_proj(x)))")
        return Linear(tap, read_by(config, layer, "ffn"), f"blocks.{layer}.ffn.{part}_proj", line)

    return formula


def gate(config: ModelConfig, layer: int) -> Formula:
    return Activation("gate", f"blocks.{layer}.ffn.gate_pre", config.ffn, Source(GATED, "gate = self.gate("))


def hidden(config: ModelConfig, layer: int) -> Formula:
    block = f"blocks.{layer}.ffn"
    if config.is_gated:
        return Product("hidden", f"{block}.gate", f"{block}.up", Source(GATED, "hidden = self.hidden(gate * up)"))
    line = Source(TWO_LAYER, "self.activation(self.up(self.up_proj(x)))")
    return Activation("hidden", f"{block}.up", config.ffn, line)


def feed_forward_out(config: ModelConfig, layer: int) -> Formula:
    line = Source(GATED if config.is_gated else TWO_LAYER, "return self.out(self.dropout(self.down_proj(")
    return Linear("out", f"blocks.{layer}.ffn.hidden", f"blocks.{layer}.ffn.down_proj", line)


ATTENTION_TAPS: dict[str, Callable[[ModelConfig, int], Formula]] = {
    "attn.q": compared("q"),
    "attn.k": compared("k"),
    "attn.v": projected("v"),
    "attn.q_norm": normed_head("q"),
    "attn.k_norm": normed_head("k"),
    "attn.q_rot": rotated("q"),
    "attn.k_rot": rotated("k"),
    "attn.scores": scores,
    "attn.pattern": pattern,
    "attn.z": fetched,
    "attn.out": attention_out,
}
FEED_FORWARD_TAPS: dict[str, Callable[[ModelConfig, int], Formula]] = {
    "ffn.gate_pre": neuron_input("gate_pre", "gate"),
    "ffn.gate": gate,
    "ffn.up": neuron_input("up", "up"),
    "ffn.hidden": hidden,
    "ffn.out": feed_forward_out,
}
