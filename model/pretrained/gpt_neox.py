"""GPT-NeoX (Black et al. 2022) and Pythia (Biderman et al. 2023)."""

from torch import Tensor

from model.config import ModelConfig
from model.layers.positions import reorder_rotary_rows
from model.pretrained.config_reader import ACTIVATIONS, HFConfigFields, parse_rope

NAMES = {
    "embed_in": "token_embedding",
    "layers.*.input_layernorm": "blocks.*.attn_norm",
    "layers.*.attention.query_key_value": "blocks.*.attn.qkv",
    "layers.*.attention.dense": "blocks.*.attn.o_proj",
    "layers.*.post_attention_layernorm": "blocks.*.ffn_norm",
    "layers.*.mlp.dense_h_to_4h": "blocks.*.ffn.up_proj",
    "layers.*.mlp.dense_4h_to_h": "blocks.*.ffn.down_proj",
    "final_layer_norm": "final_norm",
    "embed_out": "lm_head",
    "lm_head": "lm_head",
}
PREFIX = "gpt_neox."


def parse_config(settings: HFConfigFields) -> ModelConfig:
    """Parse a `config.json` of the family; ModelError if a value is not supported."""
    has_biases = settings.flag("attention_bias")
    theta, scaling, rotary_dim = parse_rope(settings)
    return ModelConfig(
        vocab_size=settings.size("vocab_size"),
        context_length=settings.size("max_position_embeddings"),
        d_model=settings.size("hidden_size"),
        num_layers=settings.num_layers("num_hidden_layers"),
        num_heads=settings.size("num_attention_heads"),
        d_ff=settings.size("intermediate_size"),
        norm="layernorm",
        norm_placement="parallel" if settings.flag("use_parallel_residual") else "pre",
        norm_eps=settings.number("layer_norm_eps"),
        rope_theta=theta,
        rope_layout="half_split",
        rotary_dim=rotary_dim,
        rope_scaling=scaling,
        ffn=settings.activation("hidden_act", ACTIVATIONS),
        bias=has_biases,
        ffn_bias=None if has_biases else True,
        tie_embeddings=settings.flag("tie_word_embeddings"),
    )


def convert_weight(name: str, weight: Tensor, config: ModelConfig) -> dict[str, Tensor]:
    """Convert a weight of the file to ours: queries, keys and values are interleaved head by head in one matrix."""
    if ".attn.qkv." not in name:
        return {name: weight}
    heads = weight.unflatten(0, (config.num_heads, 3, config.d_head))  # (H, 3, d, …)
    projections = dict(zip("qkv", (kind.flatten(0, 1) for kind in heads.unbind(1)), strict=True))
    projections |= {kind: reorder_rotary_rows(projections[kind], config) for kind in "qk"}
    return {name.replace("qkv", f"{kind}_proj"): projection for kind, projection in projections.items()}
