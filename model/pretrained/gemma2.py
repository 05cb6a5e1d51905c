"""Gemma 2 (Riviere et al. 2024).

Its gains are stored less 1: ours are 1 + w, made in float32, as in fewer bits 1 + w would lose most of w.
"""

import math
from typing import Any

from torch import Tensor

from model.config import ModelConfig
from model.pretrained import llama
from model.pretrained.rotation import rotation
from model.pretrained.settings import GATES, Settings

NAMES = llama.NAMES | {
    "model.layers.*.post_attention_layernorm": "blocks.*.attn_out_norm",
    "model.layers.*.pre_feedforward_layernorm": "blocks.*.ffn_norm",
    "model.layers.*.post_feedforward_layernorm": "blocks.*.ffn_out_norm",
}


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
    theta, scaling, rotary_dim = rotation(settings, parameters)
    head_dim, divided_by = settings.size("head_dim"), settings.number("query_pre_attn_scalar")
    return ModelConfig(
        vocab_size=settings.size("vocab_size"),
        context_length=settings.size("max_position_embeddings"),
        d_model=settings.size("hidden_size"),
        num_layers=settings.num_layers("num_hidden_layers"),
        num_heads=settings.size("num_attention_heads"),
        d_ff=settings.size("intermediate_size"),
        num_kv_heads=settings.size("num_key_value_heads"),
        head_dim=head_dim,
        norm_placement="sandwich",
        norm_eps=settings.number("rms_norm_eps"),
        windows=windows or windows_of(settings),
        score_divisor=None if divided_by == head_dim else math.sqrt(divided_by),
        score_cap=settings.number("attn_logit_softcapping") if settings.reads("attn_logit_softcapping") else None,
        logit_cap=settings.number("final_logit_softcapping"),
        rope_theta=theta,
        rope_layout="half_split",
        rotary_dim=rotary_dim,
        rope_scaling=scaling,
        ffn=settings.activation("hidden_activation", GATES),
        tie_embeddings=settings.flag("tie_word_embeddings"),
        scale_embeddings=True,
    )


def windows_of(settings: Settings, period: int = 2) -> tuple[int | None, ...]:
    """How many tokens a query sees, layer by layer: all of them in every second or so, where no list of layers says."""
    layers, window = settings.num_layers("num_hidden_layers"), settings.size("sliding_window")
    return llama.read_layer_windows(settings, window, [(layer + 1) % period != 0 for layer in range(layers)])


def moved(name: str, weight: Tensor, config: ModelConfig) -> dict[str, Tensor]:
    """What one of the file's weights is of ours."""
    return {name: 1 + weight.float()} if "norm" in name else llama.moved(name, weight, config)
