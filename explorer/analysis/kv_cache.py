"""What generation keeps of earlier tokens, so as not to compute it again."""

import numpy as np

from explorer.tracing.trace import Trace
from model.config import ModelConfig
from model.counting import flops_table, kv_cache_bytes_per_token


def cached_name(trace: Trace, layer: int, part: str) -> str:
    """The captured value that the cache holds of a layer: its keys ("k"), turned where the model turns them, or its
    values ("v")."""
    name = f"blocks.{layer}.attn.{part}"
    return f"{name}_rot" if part == "k" and f"{name}_rot" in trace else name


def cached_lengths(trace: Trace, layer: int, part: str) -> np.ndarray:
    """(G, T) ‖x‖₂ of the stored vector of every kv head and position."""
    return np.linalg.norm(trace[cached_name(trace, layer, part)], axis=-1)


def whole_lengths(trace: Trace, part: str) -> np.ndarray:
    """(L, T) ‖x‖₂ of what every layer stores of a position, the vectors of all its kv heads as one."""
    return np.stack([np.linalg.norm(cached_lengths(trace, i, part), axis=0) for i in range(trace.config.num_layers)])


def positions_computed(steps: int) -> tuple[np.ndarray, np.ndarray]:
    """(steps,) each: positions that have gone through the model after each step of a token, with a cache and without.

    With it n, one a step; without 1 + 2 + … + n = n (n + 1) / 2.
    """
    n = np.arange(1, steps + 1)
    return n, n * (n + 1) // 2


def megabytes_stored(config: ModelConfig, positions: np.ndarray | int, shared: bool = True) -> np.ndarray | float:
    """What the keys and values of so many positions take, 4 bytes a number; not `shared`, as if every head of queries
    had its own."""
    each = kv_cache_bytes_per_token(config)
    each = each if shared else each * config.num_heads // config.kv_heads
    return positions * (each / 1e6)


def step_flops(config: ModelConfig, position: int) -> tuple[int, int]:
    """Floating-point operations of the step at a position, with a cache and without: then of all positions up to it."""
    each = [sum(row.count for row in flops_table(config, keys)) for keys in range(1, position + 2)]
    return each[-1], sum(each)
