"""Gemma 3 (Kamath et al. 2025), text only.

Gemma 2 with other rotary angles in layers with windows, and norms of queries and keys in place of a score cap.
"""

from dataclasses import replace
from typing import Any

from model.config import ModelConfig
from model.pretrained import gemma2
from model.pretrained.config_reader import HFConfigFields

NAMES = gemma2.NAMES
convert_weight = gemma2.convert_weight


def parse_config(settings: HFConfigFields) -> ModelConfig:
    """Parse a `config.json` of the family; ModelError if a value is not supported."""
    full_attention, sliding_attention = rope_parameters(settings)
    config = gemma2.parse_config(
        settings, gemma2.parse_windows(settings, settings.size("sliding_window_pattern")), full_attention
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
