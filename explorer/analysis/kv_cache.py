"""The KV cache: norms of the stored vectors, memory and computation saved in generation."""

import numpy as np

from explorer.tracing.trace import Trace
from model.config import ModelConfig
from model.parameter_and_flop_counts import flops_table, kv_cache_bytes_per_token


def cached_tap(trace: Trace, layer: int, kind: str) -> str:
    """Return the tap of the cached keys ("k"), after rotation if the model uses RoPE, or values ("v") of a layer."""
    name = f"blocks.{layer}.attn.{kind}"
    return f"{name}_rot" if kind == "k" and f"{name}_rot" in trace else name


def cached_norms(trace: Trace, layer: int, kind: str) -> np.ndarray:
    """Return ‖x‖₂ of the cached vector of every kv head and position, (G, T)."""
    return np.linalg.norm(trace[cached_tap(trace, layer, kind)], axis=-1)


def cached_norms_all_heads(trace: Trace, kind: str) -> np.ndarray:
    """Return ‖x‖₂ of each layer's cached vectors of a position, all kv heads concatenated, (L, T)."""
    return np.stack([np.linalg.norm(cached_norms(trace, i, kind), axis=0) for i in range(trace.config.num_layers)])


def positions_computed(steps: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the number of positions computed after each generation step, with and without a cache, (steps,) each.

    With a cache n after n steps; without one 1 + 2 + … + n = n (n + 1) / 2.
    """
    n = np.arange(1, steps + 1)
    return n, n * (n + 1) // 2


def megabytes_stored(config: ModelConfig, positions: np.ndarray | int, shared: bool = True) -> np.ndarray | float:
    """Return the memory of the cached keys and values of `positions` positions, 4 bytes a number.

    If not `shared`, as if every query head had its own keys and values.
    """
    bytes_per_token = kv_cache_bytes_per_token(config)
    bytes_per_token = bytes_per_token if shared else bytes_per_token * config.num_heads // config.kv_heads
    return positions * (bytes_per_token / 1e6)


def step_flops(config: ModelConfig, position: int) -> tuple[int, int]:
    """Return the floating-point operations of a generation step, with a cache and without one.

    Without a cache, all positions up to `position` are computed again.
    """
    flops = [sum(row.count for row in flops_table(config, keys)) for keys in range(1, position + 2)]
    return flops[-1], sum(flops)
