"""Attention of a layer: visible keys, rotation, the divisor of scores, and token axes of captured values."""

import numpy as np

from model.config import ModelConfig


def visibility_mask(config: ModelConfig, layer: int, length: int) -> np.ndarray:
    """Return the causal mask of a layer, (T, T) booleans, row = query: itself and earlier keys within the window."""
    window, past = config.window(layer), np.tri(length, dtype=bool)
    return past if window is None else past & ~np.tri(length, k=-window, dtype=bool)


def first_visible_key(config: ModelConfig, layer: int, query: int) -> int:
    """Return the first key that a query of a layer sees."""
    window = config.window(layer)
    return 0 if window is None else max(0, query - window + 1)


ANGLES, LOCAL_ANGLES = (
    "rope.angles",
    "local_rope.angles",
)  # taps of rotation angles: of all layers; of layers with a window


def angles_tap(config: ModelConfig, layer: int) -> str:
    """Return the tap of the angles by which a layer rotates queries and keys, if it rotates them."""
    return LOCAL_ANGLES if config.uses_local_rope(layer) else ANGLES


def rotary_attention_factors(config: ModelConfig, layer: int) -> np.ndarray | None:
    """Return the factors that multiply a layer's rotated pairs, (F,); None if all are 1."""
    scaling = None if config.uses_local_rope(layer) else config.rope_scaling
    if scaling is None or scaling.attention_factor == 1 or not config.has_rope(layer):
        return None
    return np.where(np.arange(config.d_head // 2) < config.num_rotary_dims // 2, scaling.attention_factor, 1.0)


def layers_without_rope(config: ModelConfig) -> list[int]:
    """Return the layers that do not rotate queries and keys, in a model with RoPE."""
    return [layer for layer in range(config.num_layers) if config.position == "rope" and not config.has_rope(layer)]


def token_axes(tap: str) -> tuple[int, ...]:
    """Return the axes of a value that count tokens, from the end, since heads may come before.

    Scores and patterns have queries and keys, all other values the rows of vectors.
    """
    return (-2, -1) if tap.endswith(("attn.scores", "attn.pattern")) else (-2,)
