"""SmolLM3 (Bakouch et al. 2025): built as Llama, but that some layers turn no queries and keys (Yang et al. 2025)."""

from dataclasses import replace

from model.config import ModelConfig
from model.errors import ModelError
from model.pretrained import llama
from model.pretrained.settings import Settings

NAMES, COMPUTED, moved = llama.NAMES, llama.COMPUTED, llama.moved
THETA = 2e6  # where a config says none


def config_of(settings: Settings) -> ModelConfig:
    """The config that a `config.json` of the family stands for; ModelError where it says what is not understood."""
    if not settings.get("use_sliding_window", False):
        settings.only("sliding_window", None)
    elif settings["sliding_window"]:
        settings["layer_types"]  # which layers have windows
    config = llama.config_of(settings)
    said = settings.get("rope_parameters") or settings.get("rope_scaling") or {}
    theta = config.rope_theta if settings.get("rope_theta") or "rope_theta" in said else THETA
    return replace(config, rope_theta=theta, rotary_layers=rotary_layers(settings))


def rotary_layers(settings: Settings) -> tuple[bool, ...]:
    """Whether each layer turns queries and keys, from the list of layers (1 where it does, whatever the field's name
    says), or from every how many of them one does not."""
    layers, interval = settings.num_layers("num_hidden_layers"), settings.get("no_rope_layer_interval", 4)
    listed = settings.get("no_rope_layers") or [int((layer + 1) % interval != 0) for layer in range(layers)]
    if len(listed) < layers or set(listed) - {0, 1}:
        raise ModelError(
            "{name} {got!r} is not understood, only {known}", name="no_rope_layers", got=listed, known=[1] * layers
        )
    return tuple(map(bool, listed[:layers]))
