"""Texts about the architecture for the formulas of views."""

import numpy as np

from explorer.translations import N_, _, translate
from model.config import ModelConfig


def shared_kv_head_text(config: ModelConfig, head: int) -> str:
    """Return the kv head of a query head, as in "kv head 2, shared by heads 4 to 5"; "" if none is shared."""
    size = config.num_heads // config.kv_heads
    group = head // size
    if size == 1:
        return ""
    first = group * size
    return _("kv head {group}, shared by heads {first} to {last}", group=group, first=first, last=first + size - 1)


def head_value_label(config: ModelConfig, value: np.ndarray, head: int) -> str:
    """Name the head's slice of a value (H, …), or of shared keys and values (G, …)."""
    return _("head {head}", head=head) if len(value) == config.num_heads else shared_kv_head_text(config, head)


def score_inputs_text(config: ModelConfig, layer: int) -> str:
    """Name the vectors whose products are a layer's scores, as in "the normalised and turned q and k"."""
    rotated = config.has_rope(layer)
    if config.qk_norm:
        return _("the normalised and turned q and k") if rotated else _("the normalised q and k")
    return _("the turned q and k") if rotated else _("q and k")


def masked_keys_text(config: ModelConfig, layer: int) -> str:
    """Describe the keys that a layer's mask hides."""
    if window := config.window(layer):
        return _("masked: {window} keys up to the query", window=window)
    return _("masked: no key after the query")


def pair_dimensions_text(config: ModelConfig) -> str:
    """Name the two dimensions that RoPE rotates together."""
    if config.rope_layout == "adjacent":
        return _("2i and 2i + 1")
    return _("i and i + {half}", half=config.d_head // 2)


def rope_scaling_text(config: ModelConfig) -> str:
    """Describe how RoPE is scaled; "" if it is not."""
    scaling = config.rope_scaling
    if scaling is None:
        return ""
    return translate(
        ROPE_SCALING_TEXTS[scaling.kind],
        factor=scaling.factor,
        original=scaling.original_context_length,
        low=scaling.low_frequency_factor,
        high=scaling.high_frequency_factor,
        scale=scaling.attention_factor,
    )


ROPE_SCALING_TEXTS = {
    "linear": N_("slowed for longer texts: every pair turns {factor:g} times slower (linear scaling)"),
    "ntk": N_(
        "slowed for longer texts: pair 0 as it was, the last pair {factor:g} times slower, those between less "
        "(NTK-aware scaling)"
    ),
    "llama3": N_(
        "slowed for longer texts: pairs that turn less than {low:g} times in {original:,} positions turn {factor:g} "
        "times slower, those that turn more than {high:g} times as they did (Llama 3 scaling)"
    ),
    "yarn": N_(
        "slowed for longer texts: pairs that turn less than {low:g} times in {original:,} positions turn {factor:g} "
        "times slower, those that turn more than {high:g} times as they did; turned pairs are multiplied by "
        "{scale:.4g} (YaRN)"
    ),
    "longrope": N_(
        "slowed by a factor of its own a pair, for texts of up to {original:,} tokens; turned pairs are multiplied by "
        "{scale:.4g} (LongRoPE)"
    ),
}
