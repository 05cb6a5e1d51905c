"""Llama and families that differ from it in a few settings: OLMo 2, Granite and SmolLM3."""

import math
from dataclasses import replace

from torch import Tensor

from model.config import ModelConfig
from model.errors import ModelError
from model.layers.positions import reorder_rotary_rows
from model.pretrained.config_reader import GATES, Family, HFConfigFields, parse_rope, parse_sizes

ROTARY_WEIGHTS = ("q_proj", "k_proj", "q_norm", "k_norm")  # whose rows are dimensions of queries or keys
OLDER_LAYER_TYPES = {"attention": "full_attention"}  # of layers, as some files call them


class Llama(Family):
    """Llama (Touvron et al. 2023, Dubey et al. 2024) and models like it: TinyLlama, SmolLM2, Mistral, Qwen2, Qwen3."""

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

    @staticmethod
    def parse_config(settings: HFConfigFields) -> ModelConfig:
        """Parse a `config.json` of the family; ModelError if a value is not supported."""
        kind = settings["model_type"]
        has_biases, has_ffn_biases = settings.flag("attention_bias"), settings.flag("mlp_bias")
        return ModelConfig(
            **parse_sizes(settings),
            **parse_rope(settings),
            norm_eps=settings.number("rms_norm_eps"),
            windows=parse_windows(settings),
            qk_norm=kind == "qwen3",
            ffn=settings.activation("hidden_act", GATES),
            bias=has_biases,
            ffn_bias=None if has_ffn_biases == has_biases else has_ffn_biases,
            qkv_bias=kind == "qwen2",
        )

    @staticmethod
    def convert_weight(name: str, weight: Tensor, config: ModelConfig) -> dict[str, Tensor]:
        """Convert a weight of the file to ours: rows of rotated dimensions are reordered."""
        is_rotary = name.startswith("blocks.") and ".attn." in name and name.split(".")[-2] in ROTARY_WEIGHTS
        return {name: reorder_rotary_rows(weight, config) if is_rotary else weight}


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


class OLMo2(Llama):
    """OLMo 2 (Walsh et al. 2025): Llama with other norms.

    The outputs of sublayers are normalised instead of their inputs, and queries and keys over all heads together.
    """

    NAMES = {name: ours for name, ours in Llama.NAMES.items() if not name.endswith("_layernorm")} | {
        "model.layers.*.post_attention_layernorm": "blocks.*.attn_norm",
        "model.layers.*.post_feedforward_layernorm": "blocks.*.ffn_norm",
    }

    @staticmethod
    def parse_config(settings: HFConfigFields) -> ModelConfig:
        """Parse a `config.json` of the family; ModelError if a value is not supported."""
        return replace(Llama.parse_config(settings), norm_placement="output", qk_norm=True, qk_norm_over="all")


OUTPUT_PROJECTIONS = ("o_proj", "down_proj")


class Granite(Llama):
    """Granite 3 (IBM 2024): Llama with four multipliers (Yang et al. 2022, "Tensor Programs V").

    Two are fields of our config: that of the embeddings, and that of the scores, as 1 / `score_divisor`. The other
    two are multiplied into the weights, for the same function: a sublayer's output r (W x + b) = (r W) x + r b is
    all that it adds to the stream, and logits (W x) / s are (W / s) x. If the unembedding is tied, the rows are
    W / s, and embeddings are multiplied by s in addition. The products are computed in float32 and then rounded to
    the type of the weights, as the products of activations that they replace are.
    """

    @staticmethod
    def parse_config(settings: HFConfigFields) -> ModelConfig:
        """Parse a `config.json` of the family; ModelError if a value is not supported."""
        config = Llama.parse_config(settings)
        multipliers = {name: float(settings.number(name)) for name in ("embedding_multiplier", "logits_scaling")}
        settings.number("residual_multiplier")
        return replace(
            config,
            score_divisor=1 / settings.number("attention_multiplier"),
            embedding_multiplier=math.prod(multipliers.values())
            if config.tie_embeddings
            else multipliers["embedding_multiplier"],
        )

    @staticmethod
    def weight_multiplier(name: str, settings: HFConfigFields, config: ModelConfig) -> float:
        """Return the factor to multiply into one of our weights, in place of Granite's multiplier of its output."""
        if name.startswith("blocks.") and name.split(".")[-2] in OUTPUT_PROJECTIONS:
            return settings.number("residual_multiplier")
        if name == ("token_embedding.weight" if config.tie_embeddings else "lm_head.weight"):
            return 1 / settings.number("logits_scaling")
        return 1.0


class SmolLM3(Llama):
    """SmolLM3 (Bakouch et al. 2025): Llama without rotation of queries and keys in some layers (Yang et al. 2025)."""

    @staticmethod
    def parse_config(settings: HFConfigFields) -> ModelConfig:
        """Parse a `config.json` of the family; ModelError if a value is not supported."""
        rotary, window = parse_rotary_layers(settings), settings.size("sliding_window")
        has_windows = settings.flag("use_sliding_window") and window is not None
        windows = read_layer_windows(settings, window, [has_windows and not is_rotary for is_rotary in rotary])
        return replace(Llama.parse_config(settings), rotary_layers=rotary, windows=windows)


def parse_rotary_layers(settings: HFConfigFields) -> tuple[bool, ...]:
    """Return per layer whether it rotates queries and keys.

    From the list `no_rope_layers` (despite its name 1 where it does), or from the interval of layers that do not.
    """
    layers, interval = settings.num_layers("num_hidden_layers"), settings.size("no_rope_layer_interval")
    flags = settings.get("no_rope_layers")
    if flags is None:
        flags = [int((layer + 1) % interval != 0) for layer in range(layers)]
    if not isinstance(flags, list) or len(flags) < layers or any(flag not in (0, 1) for flag in flags):
        raise ModelError(
            "{name} {got!r} is not understood, only {known}", name="no_rope_layers", got=flags, known=[1] * layers
        )
    return tuple(map(bool, flags[:layers]))
