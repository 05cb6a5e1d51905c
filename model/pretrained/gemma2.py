"""Gemma 2 (Riviere et al. 2024).

Its gains are stored less 1: ours are 1 + w, made in float32, as in fewer bits 1 + w would lose most of w.
"""

import math
from collections.abc import Sequence
from typing import Any

from torch import Tensor

from model.config import ModelConfig
from model.pretrained import llama
from model.pretrained.rotation import rotation
from model.pretrained.settings import ACTIVATIONS, Settings

NAMES = llama.NAMES | {
    "model.layers.*.post_attention_layernorm": "blocks.*.attn_out_norm",
    "model.layers.*.pre_feedforward_layernorm": "blocks.*.ffn_norm",
    "model.layers.*.post_feedforward_layernorm": "blocks.*.ffn_out_norm",
}
COMPUTED = llama.COMPUTED
GATES = [name for name, ours in ACTIVATIONS.items() if ours == "gelu_tanh"]


def config_of(
    settings: Settings, windows: tuple[int | None, ...] | None = None, parameters: dict[str, Any] | None = None
) -> ModelConfig:
    """The config that a `config.json` of the family stands for; ModelError where it says what is not understood.

    Args:
        windows: of a model built alike; None for this family's own.
        parameters: of its rotation; likewise.
    """
    for name in ("attention_bias", "use_bidirectional_attention"):
        settings.only(name, False)
    for name in ("hidden_activation", "hidden_act"):  # older files have both
        settings.only(name, "gelu_pytorch_tanh", *GATES)
    settings.get("cache_implementation")  # how keys and values are kept, which changes none of them
    theta, scaling, rotary_dim = rotation(settings, parameters=parameters)
    head_dim, divided_by = settings.get("head_dim", 256), settings.get("query_pre_attn_scalar", 256)
    return ModelConfig(
        vocab_size=settings["vocab_size"],
        context_length=settings["max_position_embeddings"],
        d_model=settings["hidden_size"],
        num_layers=settings.num_layers("num_hidden_layers"),
        num_heads=settings["num_attention_heads"],
        d_ff=settings["intermediate_size"],
        num_kv_heads=settings.get("num_key_value_heads"),
        head_dim=head_dim,
        norm_placement="sandwich",
        norm_eps=settings.get("rms_norm_eps", 1e-6),
        windows=windows or windows_of(settings),
        score_divisor=None if divided_by == head_dim else math.sqrt(divided_by),
        score_cap=settings.get("attn_logit_softcapping"),
        logit_cap=settings.get("final_logit_softcapping"),
        rope_theta=theta,
        rope_layout="half_split",
        rotary_dim=rotary_dim,
        rope_scaling=scaling,
        ffn="geglu",
        tie_embeddings=settings.get("tie_word_embeddings", True),
        scale_embeddings=True,
    )


def windows_of(settings: Settings, unsaid: Sequence[bool] = ()) -> tuple[int | None, ...]:
    """How many tokens a query sees, layer by layer; `unsaid` is in which it sees all, where no list of layers says,
    every other one if not given."""
    layers, window = settings.num_layers("num_hidden_layers"), settings.get("sliding_window", 4096)
    kinds = {"sliding_attention": window, "full_attention": None}
    known = [[*kinds][all_] for all_ in unsaid or [layer % 2 == 1 for layer in range(layers)]]
    listed = settings.get("layer_types") or known
    if set(listed) - set(kinds) or len(listed) != layers:
        settings.only("layer_types", known)
    return tuple(kinds[kind] for kind in listed)


def moved(name: str, weight: Tensor, config: ModelConfig) -> dict[str, Tensor]:
    """What one of the file's weights is of ours."""
    return {name: 1 + weight.float()} if "norm" in name else llama.moved(name, weight, config)
