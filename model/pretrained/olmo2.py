"""OLMo 2 (Walsh et al. 2025): Llama with other norms.

The outputs of sublayers are normalised instead of their inputs, and queries and keys over all heads together.
"""

from dataclasses import replace

from model.config import ModelConfig
from model.pretrained import llama
from model.pretrained.config_reader import HFConfigFields

NAMES = {name: ours for name, ours in llama.NAMES.items() if not name.endswith("_layernorm")} | {
    "model.layers.*.post_attention_layernorm": "blocks.*.attn_norm",
    "model.layers.*.post_feedforward_layernorm": "blocks.*.ffn_norm",
}
convert_weight = llama.convert_weight


def parse_config(settings: HFConfigFields) -> ModelConfig:
    """Parse a `config.json` of the family; ModelError if a value is not supported."""
    return replace(llama.parse_config(settings), norm_placement="output", qk_norm=True, qk_norm_over="all")
