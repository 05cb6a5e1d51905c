"""What kind of model it is, in the words of a view's formula."""

import numpy as np

from model.config import ModelConfig


def shared_head(config: ModelConfig, head: int) -> str:
    """Whose keys and values a head reads, as in "kv head 2, shared by heads 4 to 5"; "" where each has its own."""
    size = config.num_heads // config.kv_heads
    group = head // size
    return f"kv head {group}, shared by heads {group * size} to {group * size + size - 1}" if size > 1 else ""


def whose(config: ModelConfig, value: np.ndarray, head: int) -> str:
    """Which part of a value a head is the head's: (H, …), or (G, …) of keys and values that are shared."""
    return f"head {head}" if len(value) == config.num_heads else shared_head(config, head)


def compared(config: ModelConfig) -> str:
    """What the scores are products of, as in "the normalised and turned q and k"."""
    done = ["normalised"] * config.qk_norm + ["turned"] * (config.position == "rope")
    return f"the {' and '.join(done)} q and k" if done else "q and k"


def dimensions_of_pair(config: ModelConfig) -> str:
    """Which dimensions turn together."""
    return {"adjacent": "2i and 2i + 1", "half_split": f"i and i + {config.d_head // 2}"}[config.rope_layout]


def slowed(config: ModelConfig) -> str:
    """How the rotation was slowed; "" where it was not."""
    scaling = config.rope_scaling
    if scaling is None:
        return ""
    times, original = f"{scaling.factor:g} times", f"{scaling.original_context_length:,} positions"
    return {
        "linear": f"slowed for longer texts: every pair turns {times} slower (linear scaling)",
        "ntk": f"slowed for longer texts: pair 0 as it was, the last pair {times} slower, those between less "
        "(NTK-aware scaling)",
        "llama3": f"slowed for longer texts: pairs that turn less than {scaling.low_frequency_factor:g} times in "
        f"{original} turn {times} slower, those that turn more than {scaling.high_frequency_factor:g} times as they "
        "did (Llama 3 scaling)",
    }[scaling.kind]
