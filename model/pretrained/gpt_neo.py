"""GPT-Neo (Black et al. 2021) and the models of TinyStories (Eldan & Li 2023)."""

from typing import Any

from model.config import ModelConfig
from model.config_checks import MOST_LAYERS
from model.errors import ModelError
from model.pretrained.settings import ACTIVATIONS, Settings

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


def config_of(settings: Settings) -> ModelConfig:
    """The config that a `config.json` of the family stands for; ModelError where it says what is not understood."""
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
        windows=windows_of(settings),
        position="learned",
        ffn=settings.activation("activation_function", ACTIVATIONS),
        bias=True,
        unbiased_qkv=True,
        tie_embeddings=settings.flag("tie_word_embeddings"),
    )


def windows_of(settings: Settings) -> tuple[int | None, ...]:
    """How many tokens a query sees, layer by layer, from the list of layers, or in older files of how often which kinds
    take turns."""
    layers, kinds = settings.num_layers("num_layers"), {"global": None, "local": settings.size("window_size")}
    name = "attention_types" if settings.get("attention_layers") is None else "attention_layers"
    listed = settings.names("attention_layers")
    if listed is None:
        listed = expand_attention_types(settings.get("attention_types", [[["global", "local"], 12]]))
    if listed is None or set(listed) - set(kinds) or len(listed) != layers:
        raise ModelError(
            "{name} {got!r} is not understood, only {known}",
            name=name,
            got=settings.get(name),
            known=(["global", "local"] * layers)[:layers],
        )
    return tuple(kinds[kind] for kind in listed)


def expand_attention_types(turns: Any) -> list[str] | None:
    """The kinds of layers, of how often which take turns; None where it is no list of [[kind, …], times]."""
    listed: list[str] = []
    try:
        for kinds, times in turns:
            if not all(isinstance(kind, str) for kind in kinds) or len(listed) + len(kinds) * times > MOST_LAYERS:
                return None
            listed += list(kinds) * times
    except (TypeError, ValueError):
        return None
    return listed
