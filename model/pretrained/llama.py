"""Llama (Touvron et al. 2023, Dubey et al. 2024) and those built alike: TinyLlama, SmolLM2, Mistral, Qwen2, Qwen3."""

from torch import Tensor

from model.config import ModelConfig
from model.pretrained.rotation import rotation, turning_first
from model.pretrained.settings import Settings

NAMES = {
    "model.embed_tokens": "token_embedding",
    "model.layers.*.input_layernorm": "blocks.*.attn_norm",
    "model.layers.*.self_attn.q_proj": "blocks.*.attn.q_proj",
    "model.layers.*.self_attn.k_proj": "blocks.*.attn.k_proj",
    "model.layers.*.self_attn.v_proj": "blocks.*.attn.v_proj",
    "model.layers.*.self_attn.o_proj": "blocks.*.attn.o_proj",
    "model.layers.*.self_attn.q_norm": "blocks.*.attn.q_norm",
    "model.layers.*.self_attn.k_norm": "blocks.*.attn.k_norm",
    "model.layers.*.post_attention_layernorm": "blocks.*.ffn_norm",
    "model.layers.*.mlp.gate_proj": "blocks.*.ffn.gate_proj",
    "model.layers.*.mlp.up_proj": "blocks.*.ffn.up_proj",
    "model.layers.*.mlp.down_proj": "blocks.*.ffn.down_proj",
    "model.norm": "final_norm",
    "lm_head": "lm_head",
}
TURNED = ("q_proj", "k_proj", "q_norm", "k_norm")  # what lists the dimensions of queries and keys
COMPUTED = ("rotary_emb.inv_freq",)  # what older files hold beside the weights


def config_of(settings: Settings) -> ModelConfig:
    """The config that a `config.json` of the family stands for; ModelError where it says what is not understood."""
    kind = settings["model_type"]
    settings.only("hidden_act", "silu")
    has_biases = settings.only("attention_bias", False, True)
    settings.only("mlp_bias", has_biases)  # the blocks' maps have them all or none, but for Qwen2's
    theta, scaling, rotary_dim = rotation(settings)
    return ModelConfig(
        vocab_size=settings["vocab_size"],
        context_length=settings["max_position_embeddings"],
        d_model=settings["hidden_size"],
        num_layers=settings.num_layers("num_hidden_layers"),
        num_heads=settings["num_attention_heads"],
        d_ff=settings["intermediate_size"],
        num_kv_heads=settings.get("num_key_value_heads"),
        head_dim=settings.get("head_dim"),
        norm_eps=settings.get("rms_norm_eps", 1e-6),
        windows=windows_of(settings),
        qk_norm=kind == "qwen3",
        rope_theta=theta,
        rope_layout="half_split",
        rotary_dim=rotary_dim,
        rope_scaling=scaling,
        bias=has_biases,
        qkv_bias=kind == "qwen2",
        tie_embeddings=settings.get("tie_word_embeddings", False),
    )


def windows_of(settings: Settings) -> tuple[int | None, ...]:
    """How many tokens a query sees, layer by layer."""
    layers, kinds = settings.num_layers("num_hidden_layers"), {"full_attention": None}
    window, applies = settings.get("sliding_window"), settings.get("use_sliding_window", True)
    first = settings.get("max_window_layers", 0)  # before it layers have none, where no list of layers says
    listed = settings.get("layer_types")
    if window and applies:
        kinds["sliding_attention"] = window
        listed = listed or ["full_attention"] * first + ["sliding_attention"] * (layers - first)
    listed = listed or ["full_attention"] * layers
    if set(listed) - set(kinds) or len(listed) != layers:
        settings.only("layer_types", ["full_attention"] * layers)
    return tuple(kinds[kind] for kind in listed)


def moved(name: str, weight: Tensor, config: ModelConfig) -> dict[str, Tensor]:
    """What one of the file's weights is of ours."""
    turned = name.startswith("blocks.") and ".attn." in name and name.split(".")[-2] in TURNED
    return {name: turning_first(weight, config) if turned else weight}
