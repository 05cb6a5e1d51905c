"""GPT-Neo (Black et al. 2021) and the models of TinyStories (Eldan & Li 2023)."""

from typing import Any

from model.config import MAX_LAYERS, ModelConfig
from model.errors import ModelError
from model.pretrained.config_reader import ACTIVATIONS, HFConfigFields

NAMES = {
    "wte": "token_embedding",
    "wpe": "position_embedding",
    "h.*.ln_1": "blocks.*.attn_norm",
    "h.*.attn.attention.q_proj": "blocks.*.attn.q_proj",
    "h.*.attn.attention.k_proj": "blocks.*.attn.k_proj",
    "h.*.attn.attention.v_proj": "blocks.*.attn.v_proj",
    "h.*.attn.attention.out_proj": "blocks.*.attn.o_proj",
    "h.*.ln_2": "blocks.*.ffn_norm",
    "h.*.mlp.c_fc": "blocks.*.ffn.up_proj",
    "h.*.mlp.c_proj": "blocks.*.ffn.down_proj",
    "ln_f": "final_norm",
    "lm_head": "lm_head",
}
PREFIX = "transformer."


def parse_config(settings: HFConfigFields) -> ModelConfig:
    """Parse a `config.json` of the family; ModelError if a value is not supported."""
    d_model = settings.size("hidden_size")
    return ModelConfig(
        vocab_size=settings.size("vocab_size"),
        context_length=settings.size("max_position_embeddings"),
        d_model=d_model,
        num_layers=settings.num_layers("num_layers"),
        num_heads=settings.size("num_heads"),
        d_ff=settings.size("intermediate_size") or 4 * d_model,
        norm="layernorm",
        norm_eps=settings.number("layer_norm_epsilon"),
        score_divisor=1.0,
        windows=parse_windows(settings),
        position="learned",
        ffn=settings.activation("activation_function", ACTIVATIONS),
        bias=True,
        unbiased_qkv=True,
        tie_embeddings=settings.flag("tie_word_embeddings"),
    )


def parse_windows(settings: HFConfigFields) -> tuple[int | None, ...]:
    """Return the window of each layer, from the list of layers or, in older files, from the repeated pattern."""
    layers, kinds = settings.num_layers("num_layers"), {"global": None, "local": settings.size("window_size")}
    name = "attention_types" if settings.get("attention_layers") is None else "attention_layers"
    layer_kinds = settings.names("attention_layers")
    if layer_kinds is None:
        layer_kinds = expand_attention_types(settings.get("attention_types", [[["global", "local"], 12]]))
    if layer_kinds is None or set(layer_kinds) - set(kinds) or len(layer_kinds) != layers:
        raise ModelError(
            "{name} {got!r} is not understood, only {known}",
            name=name,
            got=settings.get(name),
            known=(["global", "local"] * layers)[:layers],
        )
    return tuple(kinds[kind] for kind in layer_kinds)


def expand_attention_types(attention_types: Any) -> list[str] | None:
    """Expand [[[kind, …], times], …] into one kind per layer; None if it is not such a list."""
    layer_kinds: list[str] = []
    try:
        for kinds, times in attention_types:
            if not all(isinstance(kind, str) for kind in kinds) or len(layer_kinds) + len(kinds) * times > MAX_LAYERS:
                return None
            layer_kinds += list(kinds) * times
    except (TypeError, ValueError):
        return None
    return layer_kinds
