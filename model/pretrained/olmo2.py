"""OLMo 2 (Walsh et al. 2025): built as Llama, but that what sublayers add is normalised and not what they read, and so
are queries and keys, those of all heads together."""

from dataclasses import replace

from model.config import ModelConfig
from model.pretrained import llama
from model.pretrained.settings import Settings

NAMES = {name: ours for name, ours in llama.NAMES.items() if not name.endswith("_layernorm")} | {
    "model.layers.*.post_attention_layernorm": "blocks.*.attn_norm",
    "model.layers.*.post_feedforward_layernorm": "blocks.*.ffn_norm",
}
moved = llama.moved


def config_of(settings: Settings) -> ModelConfig:
    """The config that a `config.json` of the family stands for; ModelError where it says what is not understood."""
    return replace(llama.config_of(settings), norm_placement="output", qk_norm=True, qk_norm_over="all")
