"""GPT-2 and models with layer norms and biases like it: GPT-Neo, GPT-NeoX and OPT."""

from typing import Any

from torch import Tensor

from model.config import MAX_LAYERS, ModelConfig
from model.errors import ModelError
from model.layers.positions import reorder_rotary_rows
from model.pretrained.config_reader import ACTIVATIONS, Family, HFConfigFields, parse_rope, parse_sizes


class GPT2(Family):
    """GPT-2 (Radford et al. 2019) and DistilGPT-2."""

    NAMES = {
        "wte": "token_embedding",
        "wpe": "position_embedding",
        "h.*.ln_1": "blocks.*.attn_norm",
        "h.*.attn.c_attn": "blocks.*.attn.qkv",
        "h.*.attn.c_proj": "blocks.*.attn.o_proj",
        "h.*.ln_2": "blocks.*.ffn_norm",
        "h.*.mlp.c_fc": "blocks.*.ffn.up_proj",
        "h.*.mlp.c_proj": "blocks.*.ffn.down_proj",
        "ln_f": "final_norm",
        "lm_head": "lm_head",
    }
    PREFIX = "transformer."

    @staticmethod
    def parse_config(settings: HFConfigFields) -> ModelConfig:
        """Parse a `config.json` of the family; ModelError if a value is not supported."""
        settings.get_supported("scale_attn_by_inverse_layer_idx", False)
        return ModelConfig(
            **parse_sizes(settings, "n_inner"),
            norm="layernorm",
            norm_eps=settings.number("layer_norm_epsilon"),
            score_divisor=None if settings.flag("scale_attn_weights") else 1.0,
            position="learned",
            ffn=settings.activation("activation_function", ACTIVATIONS),
            bias=True,
        )

    @staticmethod
    def convert_weight(name: str, weight: Tensor, config: ModelConfig) -> dict[str, Tensor]:
        """Convert a weight of the file to ours: matrices are transposed, and queries, keys and values are split."""
        if name.startswith("blocks.") and weight.ndim == 2:
            weight = weight.T.contiguous()
        return split_qkv(name, weight)


def split_qkv(name: str, weight: Tensor) -> dict[str, Tensor]:
    """Split a weight of queries, keys and values (3D, …) into three; any other is returned alone."""
    if ".attn.qkv." not in name:
        return {name: weight}
    return {
        name.replace("qkv", f"{kind}_proj"): projection for kind, projection in zip("qkv", weight.chunk(3), strict=True)
    }


class GPTNeo(Family):
    """GPT-Neo (Black et al. 2021) and the models of TinyStories (Eldan & Li 2023)."""

    NAMES = {name: ours for name, ours in GPT2.NAMES.items() if ".attn." not in name} | {
        "h.*.attn.attention.q_proj": "blocks.*.attn.q_proj",
        "h.*.attn.attention.k_proj": "blocks.*.attn.k_proj",
        "h.*.attn.attention.v_proj": "blocks.*.attn.v_proj",
        "h.*.attn.attention.out_proj": "blocks.*.attn.o_proj",
    }
    PREFIX = GPT2.PREFIX

    @staticmethod
    def parse_config(settings: HFConfigFields) -> ModelConfig:
        """Parse a `config.json` of the family; ModelError if a value is not supported."""
        return ModelConfig(
            **parse_sizes(settings),
            norm="layernorm",
            norm_eps=settings.number("layer_norm_epsilon"),
            score_divisor=1.0,
            windows=parse_windows(settings),
            position="learned",
            ffn=settings.activation("activation_function", ACTIVATIONS),
            bias=True,
            unbiased_qkv=True,
        )


def parse_windows(settings: HFConfigFields) -> tuple[int | None, ...]:
    """Return the window of each layer, from the list of layers or, in older files, from the repeated pattern."""
    layers, kinds = settings.num_layers("num_hidden_layers"), {"global": None, "local": settings.size("window_size")}
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


class GPTNeoX(Family):
    """GPT-NeoX (Black et al. 2022) and Pythia (Biderman et al. 2023)."""

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

    @staticmethod
    def parse_config(settings: HFConfigFields) -> ModelConfig:
        """Parse a `config.json` of the family; ModelError if a value is not supported."""
        has_biases = settings.flag("attention_bias")
        return ModelConfig(
            **parse_sizes(settings),
            **parse_rope(settings),
            norm="layernorm",
            norm_placement="parallel" if settings.flag("use_parallel_residual") else "pre",
            norm_eps=settings.number("layer_norm_eps"),
            ffn=settings.activation("hidden_act", ACTIVATIONS),
            bias=has_biases,
            ffn_bias=None if has_biases else True,
        )

    @staticmethod
    def convert_weight(name: str, weight: Tensor, config: ModelConfig) -> dict[str, Tensor]:
        """Convert a weight of the file to ours: queries, keys and values are interleaved head by head in one matrix."""
        if ".attn.qkv." not in name:
            return {name: weight}
        heads = weight.unflatten(0, (config.num_heads, 3, config.d_head))  # (H, 3, d, …)
        projections = dict(zip("qkv", (kind.flatten(0, 1) for kind in heads.unbind(1)), strict=True))
        projections |= {kind: reorder_rotary_rows(projections[kind], config) for kind in "qk"}
        return {name.replace("qkv", f"{kind}_proj"): projection for kind, projection in projections.items()}


FIRST_POSITION = 2  # the table's row of the first token: those before it were for padding


class OPT(Family):
    """OPT (Zhang et al. 2022), except its 350M model, whose embeddings are narrower than its stream."""

    NAMES = {
        "decoder.embed_tokens": "token_embedding",
        "decoder.embed_positions": "position_embedding",
        "decoder.layers.*.self_attn_layer_norm": "blocks.*.attn_norm",
        "decoder.layers.*.self_attn.q_proj": "blocks.*.attn.q_proj",
        "decoder.layers.*.self_attn.k_proj": "blocks.*.attn.k_proj",
        "decoder.layers.*.self_attn.v_proj": "blocks.*.attn.v_proj",
        "decoder.layers.*.self_attn.out_proj": "blocks.*.attn.o_proj",
        "decoder.layers.*.final_layer_norm": "blocks.*.ffn_norm",
        "decoder.layers.*.fc1": "blocks.*.ffn.up_proj",
        "decoder.layers.*.fc2": "blocks.*.ffn.down_proj",
        "decoder.final_layer_norm": "final_norm",
        "lm_head": "lm_head",
    }

    @staticmethod
    def parse_config(settings: HFConfigFields) -> ModelConfig:
        """Parse a `config.json` of the family; ModelError if a value is not supported."""
        settings.get_supported("word_embed_proj_dim", settings.size("hidden_size"))
        settings.get_supported("layer_norm_elementwise_affine", True)
        is_pre_norm = settings.flag("do_layer_norm_before")
        if is_pre_norm:  # else there is no norm at the end anyway
            settings.get_supported("_remove_final_layer_norm", False)
        return ModelConfig(
            **parse_sizes(settings, "ffn_dim"),
            norm="layernorm",
            norm_placement="pre" if is_pre_norm else "post",
            position="learned",
            ffn=settings.activation("activation_function", ACTIVATIONS),
            bias=settings.flag("enable_bias"),
        )

    @staticmethod
    def convert_weight(name: str, weight: Tensor, config: ModelConfig) -> dict[str, Tensor]:
        """Convert a weight of the file to ours: the first two rows of the position table (padding) are dropped."""
        return {name: weight[FIRST_POSITION:] if name.startswith("position_embedding.") else weight}
