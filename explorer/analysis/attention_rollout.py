"""Attention rollout: attention followed back through all layers (Abnar & Zuidema 2020)."""

import numpy as np

from explorer.tracing.trace import Trace


def attention_rollout(trace: Trace, query: int) -> np.ndarray:
    """Return the attention rollout of a query, (T,): weights of all positions, which sum to 1.

    In every layer half of a vector comes from the token itself, along the residual stream, and half from the keys
    of the mean head: Ã = ½ A + ½ I (§3, with rows normalised). This is the query's row of Ã_L … Ã_2 Ã_1.
    """
    row = np.eye(len(trace))[query]
    for layer in reversed(range(trace.config.num_layers)):
        attention = trace[f"blocks.{layer}.attn.pattern"].mean(0, dtype=np.float64)  # (T, T)
        row = 0.5 * (row @ (attention / attention.sum(-1, keepdims=True))) + 0.5 * row
    return row
