"""Llama (Touvron et al. 2023, Dubey et al. 2024) and those built alike: TinyLlama, SmolLM2, Mistral, Qwen2, Qwen3."""

from torch import Tensor

from model.config import ModelConfig
from model.errors import ModelError
from model.pretrained.rotation import rotation, turning_first
from model.pretrained.settings import GATES, Settings

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
OLDER_KINDS = {"attention": "full_attention"}  # of layers, as some files call them


def config_of(settings: Settings) -> ModelConfig:
    """The config that a `config.json` of the family stands for; ModelError where it says what is not understood."""
    kind = settings["model_type"]
    has_biases = settings.flag("attention_bias")
    if settings.flag("mlp_bias") != has_biases:  # our blocks' maps have them all or none, but for Qwen2's
        raise ModelError(
            "attention_bias {attention} and mlp_bias {mlp} are not understood, only two that are alike",
            attention=has_biases,
            mlp=not has_biases,
        )
    theta, scaling, rotary_dim = rotation(settings)
    return ModelConfig(
        vocab_size=settings.size("vocab_size"),
        context_length=settings.size("max_position_embeddings"),
        d_model=settings.size("hidden_size"),
        num_layers=settings.num_layers("num_hidden_layers"),
        num_heads=settings.size("num_attention_heads"),
        d_ff=settings.size("intermediate_size"),
        num_kv_heads=settings.size("num_key_value_heads"),
        head_dim=settings.size("head_dim"),
        norm_eps=settings.number("rms_norm_eps"),
        windows=windows_of(settings),
        qk_norm=kind == "qwen3",
        rope_theta=theta,
        rope_layout="half_split",
        rotary_dim=rotary_dim,
        rope_scaling=scaling,
        ffn=settings.activation("hidden_act", GATES),
        bias=has_biases,
        qkv_bias=kind == "qwen2",
        tie_embeddings=settings.flag("tie_word_embeddings"),
    )


def windows_of(settings: Settings) -> tuple[int | None, ...]:
    """How many tokens a query sees, layer by layer: in some families all layers have a window if there is one, in
    others those from some layer on, where no list of layers says."""
    layers, window = settings.num_layers("num_hidden_layers"), settings.size("sliding_window")
    if not settings.reads("max_window_layers"):
        return (window,) * layers
    window = window if settings.flag("use_sliding_window") else None
    first = settings.get("max_window_layers")
    if not isinstance(first, int | float):
        settings.only("max_window_layers", layers)
    return read_layer_windows(settings, window, [layer >= first and window is not None for layer in range(layers)])


def read_layer_windows(settings: Settings, window: int | None, unsaid: list[bool]) -> tuple[int | None, ...]:
    """How many tokens a query sees, layer by layer, by the list of layers in the file.

    Args:
        unsaid: which layers have the window, where there is no list.
    """
    usual = ["sliding_attention" if has_window else "full_attention" for has_window in unsaid]
    listed = [OLDER_KINDS.get(kind, kind) for kind in settings.names("layer_types") or usual]
    kinds = {"full_attention": None, "sliding_attention": window}
    if set(listed) - set(kinds) or len(listed) != len(usual):
        raise ModelError("{name} {got!r} is not understood, only {known}", name="layer_types", got=listed, known=usual)
    return tuple(kinds[kind] for kind in listed)


def moved(name: str, weight: Tensor, config: ModelConfig) -> dict[str, Tensor]:
    """What one of the file's weights is of ours."""
    turned = name.startswith("blocks.") and ".attn." in name and name.split(".")[-2] in TURNED
    return {name: turning_first(weight, config) if turned else weight}
