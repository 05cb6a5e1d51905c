"""SmolLM3 (Bakouch et al. 2025): built as Llama, but that some layers turn no queries and keys (Yang et al. 2025)."""

from dataclasses import replace

from model.config import ModelConfig
from model.errors import ModelError
from model.pretrained import llama
from model.pretrained.settings import Settings

NAMES, moved = llama.NAMES, llama.moved


def config_of(settings: Settings) -> ModelConfig:
    """The config that a `config.json` of the family stands for; ModelError where it says what is not understood."""
    rotary, window = rotary_layers(settings), settings.size("sliding_window")
    has_windows = settings.flag("use_sliding_window") and window is not None
    windows = llama.read_layer_windows(settings, window, [has_windows and not turns for turns in rotary])
    return replace(llama.config_of(settings), rotary_layers=rotary, windows=windows)


def rotary_layers(settings: Settings) -> tuple[bool, ...]:
    """Whether each layer turns queries and keys, from the list of layers (1 where it does, whatever the field's name
    says), or from every how many of them one does not."""
    layers, interval = settings.num_layers("num_hidden_layers"), settings.size("no_rope_layer_interval")
    listed = settings.get("no_rope_layers")
    if listed is None:
        listed = [int((layer + 1) % interval != 0) for layer in range(layers)]
    if not isinstance(listed, list) or len(listed) < layers or any(each not in (0, 1) for each in listed):
        raise ModelError(
            "{name} {got!r} is not understood, only {known}", name="no_rope_layers", got=listed, known=[1] * layers
        )
    return tuple(map(bool, listed[:layers]))
