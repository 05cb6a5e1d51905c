"""Gemma (Mesnard et al. 2024), Gemma 2 (Riviere et al. 2024) and the text models of Gemma 3 (Kamath et al. 2025).

Their norms are stored as w = gain − 1: the gain 1 + w is computed in float32, since fewer bits would lose most of w.
"""

import math
from dataclasses import replace
from typing import Any

from torch import Tensor

from model.config import ModelConfig
from model.pretrained.config_reader import GATES, HFConfigFields, parse_rope, parse_sizes
from model.pretrained.llama import Llama, read_layer_windows


class Gemma(Llama):
    """Gemma: Llama with GEGLU and scaled embeddings."""

    @staticmethod
    def parse_config(settings: HFConfigFields) -> ModelConfig:
        """Parse a `config.json` of the family; ModelError if a value is not supported."""
        settings.get_supported("use_bidirectional_attention", False)
        return replace(Llama.parse_config(settings), scale_embeddings=True)

    @staticmethod
    def convert_weight(name: str, weight: Tensor, config: ModelConfig) -> dict[str, Tensor]:
        """Convert a weight of the file to ours: the gains of norms are stored less 1, all else is as in Llama."""
        return {name: 1 + weight.float()} if "norm" in name else Llama.convert_weight(name, weight, config)


class Gemma2(Gemma):
    """Gemma 2: norms also after the sublayers, windows in every other layer, and soft caps."""

    NAMES = Llama.NAMES | {
        "model.layers.*.post_attention_layernorm": "blocks.*.attn_out_norm",
        "model.layers.*.pre_feedforward_layernorm": "blocks.*.ffn_norm",
        "model.layers.*.post_feedforward_layernorm": "blocks.*.ffn_out_norm",
    }

    @staticmethod
    def parse_config(
        settings: HFConfigFields,
        windows: tuple[int | None, ...] | None = None,
        parameters: dict[str, Any] | None = None,
    ) -> ModelConfig:
        """Parse a `config.json` of the family; ModelError if a value is not supported.

        Args:
            windows: in place of this family's own, for families built alike.
            parameters: of the rotation, in place of this family's own.
        """
        settings.get_supported("use_bidirectional_attention", False)
        has_biases = settings.flag("attention_bias")
        head_dim, pre_attn_scalar = settings.size("head_dim"), settings.number("query_pre_attn_scalar")
        return ModelConfig(
            **parse_sizes(settings),
            **parse_rope(settings, parameters),
            norm_placement="sandwich",
            norm_eps=settings.number("rms_norm_eps"),
            windows=windows or parse_windows(settings),
            score_divisor=None if pre_attn_scalar == head_dim else math.sqrt(pre_attn_scalar),
            score_cap=settings.number("attn_logit_softcapping") if settings.reads("attn_logit_softcapping") else None,
            logit_cap=settings.number("final_logit_softcapping"),
            ffn=settings.activation("hidden_activation", GATES),
            bias=has_biases,
            ffn_bias=False if has_biases else None,
            scale_embeddings=True,
        )


def parse_windows(settings: HFConfigFields, period: int = 2) -> tuple[int | None, ...]:
    """Return the window of each layer: None, all tokens, in every `period`-th, unless the file lists layer types."""
    layers, window = settings.num_layers("num_hidden_layers"), settings.size("sliding_window")
    return read_layer_windows(settings, window, [(layer + 1) % period != 0 for layer in range(layers)])


class Gemma3(Gemma2):
    """Gemma 2 with other rotary angles in layers with windows, and norms of queries and keys, no score cap."""

    @staticmethod
    def parse_config(settings: HFConfigFields) -> ModelConfig:
        """Parse a `config.json` of the family; ModelError if a value is not supported."""
        full_attention, sliding_attention = rope_parameters(settings)
        config = Gemma2.parse_config(
            settings, parse_windows(settings, settings.size("sliding_window_pattern")), full_attention
        )
        local = settings.read_object("rope_parameters.sliding_attention", sliding_attention)
        for name in ("rope_type", "type"):
            local.get_supported(name, "default")
        local_theta = local.number("rope_theta") or settings.number("rope_local_base_freq")
        return replace(config, qk_norm=True, local_rope_theta=float(local_theta))


def rope_parameters(settings: HFConfigFields) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the rotation's parameters in layers without windows, and in those with.

    Older files have only the first, in an object `rope_scaling`, whose older name of the kind transformers does
    not read.
    """
    parameters = settings.read_object(
        "rope_parameters", settings.get("rope_parameters", {"full_attention": {"rope_type": "default"}})
    )
    scaling = settings.read_object("rope_scaling", settings.get("rope_scaling", {})).read_all()
    full_attention, sliding_attention = parameters.get("full_attention", {}), parameters.get("sliding_attention", {})
    return settings.read_object(
        "rope_parameters.full_attention", full_attention
    ).read_all() | scaling, sliding_attention
