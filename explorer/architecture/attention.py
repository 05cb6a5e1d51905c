"""Which keys a model's queries see, in which layers both are turned, and by what their products are divided."""

import numpy as np

from model.config import ModelConfig


def visible(config: ModelConfig, layer: int, length: int) -> np.ndarray:
    """(T, T) booleans, row = query: itself and all keys before it, or as many of them as the layer's window has."""
    window, past = config.window(layer), np.tri(length, dtype=bool)
    return past if window is None else past & ~np.tri(length, k=-window, dtype=bool)


def first_visible(config: ModelConfig, layer: int, query: int) -> int:
    """The first key that a query of a layer sees."""
    window = config.window(layer)
    return 0 if window is None else max(0, query - window + 1)


def divisor(config: ModelConfig) -> str:
    """What scores are divided by, as a formula has it: "√d", or a number."""
    return "√d" if config.score_divisor is None else f"{config.score_divisor:g}"


def divisor_in_numbers(config: ModelConfig) -> str:
    """The same with d in it, as in "√64"."""
    return f"√{config.d_head}" if config.score_divisor is None else f"{config.score_divisor:g}"


ANGLES, LOCAL_ANGLES = "rope.angles", "local_rope.angles"  # by which layers turn; where queries see a window


def angles_of(config: ModelConfig, layer: int) -> str:
    """Which captured angles a layer turns queries and keys by, if it turns them."""
    return LOCAL_ANGLES if config.turns_locally(layer) else ANGLES


def rotation_scales(config: ModelConfig, layer: int) -> np.ndarray | None:
    """(F,) what a layer multiplies each pair by as it turns it; None where it only turns."""
    scaling = None if config.turns_locally(layer) else config.rope_scaling
    if scaling is None or scaling.attention_factor == 1 or not config.rotates(layer):
        return None
    return np.where(np.arange(config.d_head // 2) < config.turned_dims // 2, scaling.attention_factor, 1.0)


def still_layers(config: ModelConfig) -> list[int]:
    """The layers that do not turn queries and keys, in a model of which others do."""
    return [layer for layer in range(config.num_layers) if config.position == "rope" and not config.rotates(layer)]
