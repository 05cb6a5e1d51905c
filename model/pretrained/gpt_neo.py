"""GPT-Neo (Black et al. 2021) and the models of TinyStories (Eldan & Li 2023)."""

from model.config import ModelConfig
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
COMPUTED = (".attn.attention.bias", ".attn.attention.masked_bias")  # the causal mask


def config_of(settings: Settings) -> ModelConfig:
    """The config that a `config.json` of the family stands for; ModelError where it says what is not understood."""
    d_model = settings["hidden_size"]
    return ModelConfig(
        vocab_size=settings["vocab_size"],
        context_length=settings["max_position_embeddings"],
        d_model=d_model,
        num_layers=settings.num_layers("num_layers"),
        num_heads=settings["num_heads"],
        d_ff=settings.get("intermediate_size", 4 * d_model),
        norm="layernorm",
        norm_eps=settings.get("layer_norm_epsilon", 1e-5),
        score_divisor=1.0,
        windows=windows_of(settings),
        position="learned",
        ffn=ACTIVATIONS[settings.only("activation_function", "gelu_new", *ACTIVATIONS)],
        bias=True,
        unbiased_qkv=True,
        tie_embeddings=settings.get("tie_word_embeddings", True),
    )


def windows_of(settings: Settings) -> tuple[int | None, ...]:
    """How many tokens a query sees, layer by layer, from the list of layers, or in older files of how often which kinds
    take turns."""
    layers, kinds = settings.num_layers("num_layers"), {"global": None, "local": settings.get("window_size", 256)}
    turns = settings.get("attention_types", [])
    listed = settings.get("attention_layers") or [kind for names, times in turns for kind in names * times]
    if set(listed) - set(kinds) or len(listed) != layers:
        settings.only("attention_layers", ["global", "local"] * (layers // 2))
    return tuple(kinds[kind] for kind in listed)
