"""Contributions of each head to a logit, by the token that it reads."""

from dataclasses import dataclass

import numpy as np

from explorer.analysis.direct_logit_attribution import direct_logit_attribution
from explorer.analysis.norms import apply_linearised_output_norm
from explorer.analysis.trace_cache import cache_per_trace
from explorer.explain.captured.interventions import active_effects
from explorer.tracing.trace import Trace


@dataclass(frozen=True)
class HeadSources:
    """The contributions of all heads at one position, by the position that each is fetched from.

    A head's z is the sum of the values v of all keys, times their attention weights. Each term goes through the head's
    columns of W_O, and through an output norm with its scale in this run.

    Attributes:
        effects: (L, H, T) contributions to the logit; 0 after the query.
        norms: (L, H, T) ‖weight × W_O v‖₂ as it is added to the stream; 0 after the query.
        changed_heads: (L, H) contributions of heads whose z an intervention changes: they have no sources.
    """

    effects: np.ndarray
    norms: np.ndarray
    changed_heads: np.ndarray


@cache_per_trace
def head_sources(trace: Trace, position: int, token_id: int, contrast_id: int | None = None) -> HeadSources:
    """Split the heads' `direct_logit_attribution` at a position by the positions that they read."""
    config, attribution = trace.config, direct_logit_attribution(trace, position, token_id, contrast_id)
    effects, norms = np.zeros((2, config.num_layers, config.num_heads, len(trace)))
    changed_heads = np.zeros(attribution.heads.shape)
    visible = slice(position + 1)
    for layer in range(config.num_layers):
        block = f"blocks.{layer}.attn"
        weights = trace[f"{block}.pattern"][:, position, visible].astype(np.float64)  # (H, n)
        values = trace[f"{block}.v"][:, visible].astype(np.float64)  # (G, n, d)
        values = np.repeat(values, config.num_heads // len(values), axis=0)  # (H, n, d)
        effects[layer, :, visible] = weights * np.einsum("hnd,hd->hn", values, attribution.head_directions[layer])
        norms[layer, :, visible] = weights * written_norms(trace, layer, values, position)
        is_changed = changed_head_mask(trace, layer, position)
        effects[layer, is_changed] = norms[layer, is_changed] = 0
        changed_heads[layer, is_changed] = attribution.heads[layer, is_changed]
    return HeadSources(effects, norms, changed_heads)


def written_norms(trace: Trace, layer: int, values: np.ndarray, position: int) -> np.ndarray:
    """Return ‖W_O v‖₂ as added to the stream at a position, of values (H, n, d): (H, n).

    ‖W v‖² = v · (Wᵀ W) v, which for long texts is less work than W v.
    """
    heads, d = len(values), values.shape[-1]
    table = trace.weights[f"blocks.{layer}.attn.o_proj.weight"][:].astype(np.float64)  # (D, H d)
    columns = table.reshape(-1, heads, d).transpose(1, 2, 0)  # (H, d, D)
    written = apply_linearised_output_norm(trace, layer, "attn", columns, position)
    products = written @ written.swapaxes(1, 2)  # (H, d, d)
    return np.sqrt(np.maximum(0, np.einsum("hnd,hnd->hn", values @ products, values)))


def changed_head_mask(trace: Trace, layer: int, position: int) -> np.ndarray:
    """Return which heads' z at a position interventions change, (H,) booleans."""
    name = f"blocks.{layer}.attn.z"
    mask = np.zeros(trace.config.num_heads, dtype=bool)
    for effect in active_effects(trace, name):
        mask |= effect.element_mask(trace.shape(name))[:, position].any(-1)
    return mask
