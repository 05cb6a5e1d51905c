"""SmolLM3 (Bakouch et al. 2025): Llama without rotation of queries and keys in some layers (Yang et al. 2025)."""

from dataclasses import replace

from model.config import ModelConfig
from model.errors import ModelError
from model.pretrained import llama
from model.pretrained.config_reader import HFConfigFields

NAMES, convert_weight = llama.NAMES, llama.convert_weight


def parse_config(settings: HFConfigFields) -> ModelConfig:
    """Parse a `config.json` of the family; ModelError if a value is not supported."""
    rotary, window = parse_rotary_layers(settings), settings.size("sliding_window")
    has_windows = settings.flag("use_sliding_window") and window is not None
    windows = llama.read_layer_windows(settings, window, [has_windows and not is_rotary for is_rotary in rotary])
    return replace(llama.parse_config(settings), rotary_layers=rotary, windows=windows)


def parse_rotary_layers(settings: HFConfigFields) -> tuple[bool, ...]:
    """Return per layer whether it rotates queries and keys.

    From the list `no_rope_layers` (despite its name 1 where it does), or from the interval of layers that do not.
    """
    layers, interval = settings.num_layers("num_hidden_layers"), settings.size("no_rope_layer_interval")
    flags = settings.get("no_rope_layers")
    if flags is None:
        flags = [int((layer + 1) % interval != 0) for layer in range(layers)]
    if not isinstance(flags, list) or len(flags) < layers or any(flag not in (0, 1) for flag in flags):
        raise ModelError(
            "{name} {got!r} is not understood, only {known}", name="no_rope_layers", got=flags, known=[1] * layers
        )
    return tuple(map(bool, flags[:layers]))
