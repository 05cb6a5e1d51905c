"""Llama (Touvron et al. 2023, Dubey et al. 2024) and those built alike: TinyLlama, SmolLM2, Mistral, Qwen2, Qwen3."""

from model.config import ModelConfig, RopeScaling
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
COMPUTED = ("rotary_emb.inv_freq",)  # what older files hold beside the weights


def config_of(settings: Settings) -> ModelConfig:
    """The config that a `config.json` of the family stands for; ModelError where it says what is not understood."""
    kind = settings["model_type"]
    context_length = settings["max_position_embeddings"]
    if window := window_of(settings):
        context_length = min(context_length, window)  # within it every token sees all before it
    settings.only("hidden_act", "silu")
    has_biases = settings.only("attention_bias", False, True)
    settings.only("mlp_bias", has_biases)  # the blocks' maps have them all or none, but for Qwen2's
    theta, scaling = rotation(settings)
    return ModelConfig(
        vocab_size=settings["vocab_size"],
        context_length=context_length,
        d_model=settings["hidden_size"],
        num_layers=settings["num_hidden_layers"],
        num_heads=settings["num_attention_heads"],
        d_ff=settings["intermediate_size"],
        num_kv_heads=settings.get("num_key_value_heads"),
        head_dim=settings.get("head_dim"),
        norm_eps=settings.get("rms_norm_eps", 1e-6),
        qk_norm=kind == "qwen3",
        rope_theta=theta,
        rope_layout="half_split",
        rope_scaling=scaling,
        bias=has_biases,
        qkv_bias=kind == "qwen2",
        tie_embeddings=settings.get("tie_word_embeddings", False),
    )


def window_of(settings: Settings) -> int | None:
    """How many tokens back every layer looks at most, of all; None where there is no limit."""
    layers = settings["num_hidden_layers"]
    kinds = set(settings.get("layer_types", ["full_attention"] * layers))
    window, applies = settings.get("sliding_window"), settings.get("use_sliding_window", True)
    settings.get("max_window_layers")  # layers before it have no window: with one, the smaller context is seen whole
    if kinds - {"full_attention", "sliding_attention"}:
        settings.only("layer_types", ["full_attention"] * layers)
    return window if applies and window else None


def rotation(settings: Settings) -> tuple[float, RopeScaling | None]:
    """θ, and how the frequencies are slowed; older files have them as fields of their own."""
    found = Settings(dict(settings.get("rope_parameters") or settings.get("rope_scaling") or {}))
    theta = found.get("rope_theta") or settings.get("rope_theta", 10000.0)
    kind = found.get("rope_type") or found.get("type", "default")
    scaling = None
    if kind == "linear":
        scaling = RopeScaling(kind="linear", factor=found["factor"])
    elif kind == "llama3":
        scaling = RopeScaling(
            kind="llama3",
            factor=found["factor"],
            low_frequency_factor=found["low_freq_factor"],
            high_frequency_factor=found["high_freq_factor"],
            original_context_length=found["original_max_position_embeddings"],
        )
    else:
        found.only("rope_type", "default")
        found.only("type", "default")
    found.get("type")
    found.finish()
    return theta, scaling
