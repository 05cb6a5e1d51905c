"""Gemma 3 (Kamath et al. 2025) where it reads text alone: as Gemma 2, with other angles where a query sees a window and
norms of queries and keys in the place of a cap."""

from dataclasses import replace
from typing import Any

from model.config import ModelConfig
from model.pretrained import gemma2
from model.pretrained.settings import Settings

NAMES = gemma2.NAMES
moved = gemma2.moved


def config_of(settings: Settings) -> ModelConfig:
    """The config that a `config.json` of the family stands for; ModelError where it says what is not understood."""
    far, near = parameters(settings)
    config = gemma2.config_of(settings, gemma2.windows_of(settings, settings.size("sliding_window_pattern")), far)
    local = settings.read_object("rope_parameters.sliding_attention", near)
    for name in ("rope_type", "type"):
        local.only(name, "default")
    local_theta = local.number("rope_theta") or settings.number("rope_local_base_freq")
    return replace(config, qk_norm=True, local_rope_theta=float(local_theta))


def parameters(settings: Settings) -> tuple[dict[str, Any], dict[str, Any]]:
    """Of the rotation of layers without windows, and of those with; older files have those of the first alone, in an
    object of which transformers does not read the older name of the kind."""
    said = settings.read_object(
        "rope_parameters", settings.get("rope_parameters", {"full_attention": {"rope_type": "default"}})
    )
    slowed = settings.read_object("rope_scaling", settings.get("rope_scaling", {})).fields()
    far, near = said.get("full_attention", {}), said.get("sliding_attention", {})
    return settings.read_object("rope_parameters.full_attention", far).fields() | slowed, near
