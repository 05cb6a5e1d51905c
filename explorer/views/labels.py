"""What kind of model it is, in the words of a view's formula."""

import numpy as np

from explorer.language import N_, _, look_up
from model.config import ModelConfig


def shared_head(config: ModelConfig, head: int) -> str:
    """Whose keys and values a head reads, as in "kv head 2, shared by heads 4 to 5"; "" where each has its own."""
    size = config.num_heads // config.kv_heads
    group = head // size
    if size == 1:
        return ""
    first = group * size
    return _("kv head {group}, shared by heads {first} to {last}", group=group, first=first, last=first + size - 1)


def whose(config: ModelConfig, value: np.ndarray, head: int) -> str:
    """Which part of a value a head is the head's: (H, …), or (G, …) of keys and values that are shared."""
    return _("head {head}", head=head) if len(value) == config.num_heads else shared_head(config, head)


def compared(config: ModelConfig, layer: int) -> str:
    """What the scores of a layer are products of, as in "the normalised and turned q and k"."""
    turned = config.rotates(layer)
    if config.qk_norm:
        return _("the normalised and turned q and k") if turned else _("the normalised q and k")
    return _("the turned q and k") if turned else _("q and k")


def masked_keys(config: ModelConfig, layer: int) -> str:
    """Which keys the mask of a layer hides."""
    if window := config.window(layer):
        return _("masked: {window} keys up to the query", window=window)
    return _("masked: no key after the query")


def dimensions_of_pair(config: ModelConfig) -> str:
    """Which dimensions turn together."""
    if config.rope_layout == "adjacent":
        return _("2i and 2i + 1")
    return _("i and i + {half}", half=config.d_head // 2)


def slowed(config: ModelConfig) -> str:
    """How the rotation was slowed; "" where it was not."""
    scaling = config.rope_scaling
    if scaling is None:
        return ""
    return look_up(
        SLOWED[scaling.kind],
        factor=scaling.factor,
        original=scaling.original_context_length,
        low=scaling.low_frequency_factor,
        high=scaling.high_frequency_factor,
        scale=scaling.attention_factor,
    )


SLOWED = {
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
