"""Phi-3 (Abdin et al. 2024) with contexts of its training: built as Llama, its projections in fewer matrices."""

from torch import Tensor

from model.config import ModelConfig
from model.pretrained import llama
from model.pretrained.rotation import turning_first

NAMES = {
    "model.embed_tokens": "token_embedding",
    "model.layers.*.input_layernorm": "blocks.*.attn_norm",
    "model.layers.*.self_attn.qkv_proj": "blocks.*.attn.qkv",
    "model.layers.*.self_attn.o_proj": "blocks.*.attn.o_proj",
    "model.layers.*.post_attention_layernorm": "blocks.*.ffn_norm",
    "model.layers.*.mlp.gate_up_proj": "blocks.*.ffn.gate_up",
    "model.layers.*.mlp.down_proj": "blocks.*.ffn.down_proj",
    "model.norm": "final_norm",
    "lm_head": "lm_head",
}
config_of = llama.config_of


def moved(name: str, weight: Tensor, config: ModelConfig) -> dict[str, Tensor]:
    """What one of the file's weights is of ours: queries, keys and values are in one, below each other, and so are gate
    and up."""
    if ".ffn.gate_up." in name:
        return {
            name.replace("gate_up", f"{part}_proj"): each
            for part, each in zip(("gate", "up"), weight.chunk(2), strict=True)
        }
    if ".attn.qkv." not in name:
        return {name: weight}
    sizes = [heads * config.d_head for heads in (config.num_heads, config.kv_heads, config.kv_heads)]
    parts = dict(zip("qkv", weight.split(sizes), strict=True))
    parts |= {part: turning_first(parts[part], config) for part in "qk"}
    return {name.replace("qkv", f"{part}_proj"): each for part, each in parts.items()}
