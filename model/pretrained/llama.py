"""Llama (Touvron et al. 2023, Dubey et al. 2024) and models built alike: TinyLlama, SmolLM2, Mistral, Qwen2, Qwen3."""

from torch import Tensor

from model.config import ModelConfig
from model.errors import ModelError
from model.layers.positions import reorder_rotary_rows
from model.pretrained.config_reader import GATES, HFConfigFields, parse_rope

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
ROTARY_WEIGHTS = ("q_proj", "k_proj", "q_norm", "k_norm")  # whose rows are dimensions of queries or keys
OLDER_LAYER_TYPES = {"attention": "full_attention"}  # of layers, as some files call them


def parse_config(settings: HFConfigFields) -> ModelConfig:
    """Parse a `config.json` of the family; ModelError if a value is not supported."""
    kind = settings["model_type"]
    has_biases, has_ffn_biases = settings.flag("attention_bias"), settings.flag("mlp_bias")
    theta, scaling, rotary_dim = parse_rope(settings)
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
        windows=parse_windows(settings),
        qk_norm=kind == "qwen3",
        rope_theta=theta,
        rope_layout="half_split",
        rotary_dim=rotary_dim,
        rope_scaling=scaling,
        ffn=settings.activation("hidden_act", GATES),
        bias=has_biases,
        ffn_bias=None if has_ffn_biases == has_biases else has_ffn_biases,
        qkv_bias=kind == "qwen2",
        tie_embeddings=settings.flag("tie_word_embeddings"),
    )


def parse_windows(settings: HFConfigFields) -> tuple[int | None, ...]:
    """Return the window of each layer, None for all tokens.

    Some families have a window in all layers, others from some layer on, unless the file lists layer types.
    """
    layers, window = settings.num_layers("num_hidden_layers"), settings.size("sliding_window")
    if not settings.reads("max_window_layers"):
        return (window,) * layers
    window = window if settings.flag("use_sliding_window") else None
    first = settings.get("max_window_layers")
    if not isinstance(first, int | float):
        settings.get_supported("max_window_layers", layers)
    return read_layer_windows(settings, window, [layer >= first and window is not None for layer in range(layers)])


def read_layer_windows(settings: HFConfigFields, window: int | None, default: list[bool]) -> tuple[int | None, ...]:
    """Return the window of each layer, None for all tokens, by the file's list of layer types.

    Args:
        default: per layer, whether it has the window, if there is no list.
    """
    default_types = ["sliding_attention" if has_window else "full_attention" for has_window in default]
    layer_types = [OLDER_LAYER_TYPES.get(kind, kind) for kind in settings.names("layer_types") or default_types]
    kinds = {"full_attention": None, "sliding_attention": window}
    if set(layer_types) - set(kinds) or len(layer_types) != len(default_types):
        raise ModelError(
            "{name} {got!r} is not understood, only {known}", name="layer_types", got=layer_types, known=default_types
        )
    return tuple(kinds[kind] for kind in layer_types)


def convert_weight(name: str, weight: Tensor, config: ModelConfig) -> dict[str, Tensor]:
    """Convert a weight of the file to ours: rows of rotated dimensions are reordered."""
    is_rotary = name.startswith("blocks.") and ".attn." in name and name.split(".")[-2] in ROTARY_WEIGHTS
    return {name: reorder_rotary_rows(weight, config) if is_rotary else weight}
