"""GPT-NeoX (Black et al. 2022) and Pythia (Biderman et al. 2023)."""

from torch import Tensor

from model.config import ModelConfig
from model.pretrained.rotation import rotation, turning_first
from model.pretrained.settings import ACTIVATIONS, Settings

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


def config_of(settings: Settings) -> ModelConfig:
    """The config that a `config.json` of the family stands for; ModelError where it says what is not understood."""
    settings.only("attention_bias", True)
    theta, scaling, rotary_dim = rotation(settings)
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
        bias=True,
        tie_embeddings=settings.flag("tie_word_embeddings"),
    )


def moved(name: str, weight: Tensor, config: ModelConfig) -> dict[str, Tensor]:
    """What one of the file's weights is of ours: queries, keys and values are in one, head by head."""
    if ".attn.qkv." not in name:
        return {name: weight}
    heads = weight.unflatten(0, (config.num_heads, 3, config.d_head))  # (H, 3, d, …)
    parts = dict(zip("qkv", (part.flatten(0, 1) for part in heads.unbind(1)), strict=True))
    parts |= {part: turning_first(parts[part], config) for part in "qk"}
    return {name.replace("qkv", f"{part}_proj"): each for part, each in parts.items()}
