"""Phi-1, Phi-1.5 and Phi-2 (Gunasekar et al. 2023, Li et al. 2023), but for norms of queries and keys."""

from torch import Tensor

from model.config import ModelConfig
from model.pretrained.rotation import rotation, turning_first
from model.pretrained.settings import ACTIVATIONS, Settings

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
COMPUTED = ("rotary_emb.inv_freq",)  # what older files hold beside the weights
HALF = 0.5  # of each head's dimensions turn where a config says nothing


def config_of(settings: Settings) -> ModelConfig:
    """The config that a `config.json` of the family stands for; ModelError where it says what is not understood."""
    settings.only("qk_layernorm", False)
    theta, scaling, rotary_dim = rotation(settings, HALF)
    return ModelConfig(
        vocab_size=settings["vocab_size"],
        context_length=settings["max_position_embeddings"],
        d_model=settings["hidden_size"],
        num_layers=settings.num_layers("num_hidden_layers"),
        num_heads=settings["num_attention_heads"],
        d_ff=settings["intermediate_size"],
        num_kv_heads=settings.get("num_key_value_heads"),
        norm="layernorm",
        norm_placement="shared",
        norm_eps=settings.get("layer_norm_eps", 1e-5),
        rope_theta=theta,
        rope_layout="half_split",
        rotary_dim=rotary_dim,
        rope_scaling=scaling,
        ffn=ACTIVATIONS[settings.only("hidden_act", "gelu_new", *ACTIVATIONS)],
        bias=True,
        unembedding_bias=True,
        tie_embeddings=settings.get("tie_word_embeddings", False),
    )


def moved(name: str, weight: Tensor, config: ModelConfig) -> dict[str, Tensor]:
    """What one of the file's weights is of ours."""
    return {name: turning_first(weight, config) if ".attn.q_proj." in name or ".attn.k_proj." in name else weight}
