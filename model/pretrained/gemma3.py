"""Gemma 3 (Kamath et al. 2025) where it reads text alone: as Gemma 2, with other angles where a query sees a window and
norms of queries and keys in the place of a cap."""

from dataclasses import replace
from typing import Any

from model.config import ModelConfig
from model.pretrained import gemma2
from model.pretrained.settings import Settings

NAMES = gemma2.NAMES
COMPUTED, moved = gemma2.COMPUTED, gemma2.moved
THETA, LOCAL_THETA, EVERY = 1e6, 1e4, 6  # where a config says none; every how many layers one has no window


def config_of(settings: Settings) -> ModelConfig:
    """The config that a `config.json` of the family stands for; ModelError where it says what is not understood."""
    settings.only("attn_logit_softcapping", None)  # which transformers does not apply
    far, near = parameters(settings)
    config = gemma2.config_of(settings, windows_of(settings), far)
    local = Settings(near)
    local.only("rope_type", "default")
    local_theta = local.get("rope_theta", LOCAL_THETA)
    local.finish()
    return replace(config, qk_norm=True, local_rope_theta=float(local_theta))


def parameters(settings: Settings) -> tuple[dict[str, Any], dict[str, Any]]:
    """Of the rotation of layers without windows, and of those with; older files have the two thetas as fields."""
    said, scaling = settings.get("rope_parameters", {}), settings.get("rope_scaling", {})
    theta, local_theta = settings.get("rope_theta", THETA), settings.get("rope_local_base_freq", LOCAL_THETA)
    far = {"rope_theta": theta} | dict(scaling) | dict(said.get("full_attention") or {})
    near = {"rope_theta": local_theta} | dict(said.get("sliding_attention") or {})
    if others := sorted(set(said) - {"full_attention", "sliding_attention"}):
        settings.only("rope_parameters", {name: said[name] for name in said if name not in others})
    return far, near


def windows_of(settings: Settings) -> tuple[int | None, ...]:
    """How many tokens a query sees, layer by layer: all of them in every sixth, where no list of layers says."""
    layers, every = settings.num_layers("num_hidden_layers"), settings.get("sliding_window_pattern", EVERY)
    settings.get("_sliding_window_pattern")  # the same, which transformers writes beside the list
    return gemma2.windows_of(settings, [(layer + 1) % every == 0 for layer in range(layers)])
