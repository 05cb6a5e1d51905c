"""Phi-3 (Abdin et al. 2024), up to the context length of its training: Llama with fused projections."""

from torch import Tensor

from model.config import ModelConfig
from model.layers.positions import reorder_rotary_rows
from model.pretrained import llama

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
parse_config = llama.parse_config


def convert_weight(name: str, weight: Tensor, config: ModelConfig) -> dict[str, Tensor]:
    """Convert a weight of the file to ours: queries, keys and values are one matrix, gate and up another."""
    if ".ffn.gate_up." in name:
        return {
            name.replace("gate_up", f"{kind}_proj"): projection
            for kind, projection in zip(("gate", "up"), weight.chunk(2), strict=True)
        }
    if ".attn.qkv." not in name:
        return {name: weight}
    sizes = [heads * config.d_head for heads in (config.num_heads, config.kv_heads, config.kv_heads)]
    projections = dict(zip("qkv", weight.split(sizes), strict=True))
    projections |= {kind: reorder_rotary_rows(projections[kind], config) for kind in "qk"}
    return {name.replace("qkv", f"{kind}_proj"): projection for kind, projection in projections.items()}
