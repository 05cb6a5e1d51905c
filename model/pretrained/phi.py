"""Phi-1, Phi-1.5 and Phi-2 (Gunasekar et al. 2023, Li et al. 2023), and Phi-3 (Abdin et al. 2024)."""

from torch import Tensor

from model.config import ModelConfig
from model.layers.positions import reorder_rotary_rows
from model.pretrained.config_reader import ACTIVATIONS, Family, HFConfigFields, parse_rope, parse_sizes
from model.pretrained.llama import Llama


class Phi(Family):
    """Phi-1 to Phi-2, without norms of queries and keys."""

    NAMES = {
        "model.embed_tokens": "token_embedding",
        "model.layers.*.input_layernorm": "blocks.*.attn_norm",
        "model.layers.*.self_attn.q_proj": "blocks.*.attn.q_proj",
        "model.layers.*.self_attn.k_proj": "blocks.*.attn.k_proj",
        "model.layers.*.self_attn.v_proj": "blocks.*.attn.v_proj",
        "model.layers.*.self_attn.dense": "blocks.*.attn.o_proj",
        "model.layers.*.mlp.fc1": "blocks.*.ffn.up_proj",
        "model.layers.*.mlp.fc2": "blocks.*.ffn.down_proj",
        "model.final_layernorm": "final_norm",
        "lm_head": "lm_head",
    }

    @staticmethod
    def parse_config(settings: HFConfigFields) -> ModelConfig:
        """Parse a `config.json` of the family; ModelError if a value is not supported."""
        settings.get_supported("qk_layernorm", False)
        return ModelConfig(
            **parse_sizes(settings),
            **parse_rope(settings),
            norm="layernorm",
            norm_placement="shared",
            norm_eps=settings.number("layer_norm_eps"),
            ffn=settings.activation("hidden_act", ACTIVATIONS),
            bias=True,
            unembedding_bias=True,
        )

    @staticmethod
    def convert_weight(name: str, weight: Tensor, config: ModelConfig) -> dict[str, Tensor]:
        """Convert a weight of the file to ours: rows of rotated dimensions are reordered."""
        return {
            name: reorder_rotary_rows(weight, config) if ".attn.q_proj." in name or ".attn.k_proj." in name else weight
        }


class Phi3(Llama):
    """Phi-3, up to the context length of its training: Llama with fused projections."""

    NAMES = {name: ours for name, ours in Llama.NAMES.items() if ".self_attn." not in name and ".mlp." not in name} | {
        "model.layers.*.self_attn.qkv_proj": "blocks.*.attn.qkv",
        "model.layers.*.self_attn.o_proj": "blocks.*.attn.o_proj",
        "model.layers.*.mlp.gate_up_proj": "blocks.*.ffn.gate_up",
        "model.layers.*.mlp.down_proj": "blocks.*.ffn.down_proj",
    }

    @staticmethod
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
