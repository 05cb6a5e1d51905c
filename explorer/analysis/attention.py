"""Attention of single heads: scores, displayed patterns and output norms."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from explorer.analysis.heads import without_first_key
from explorer.architecture.attention import visibility_mask
from explorer.architecture.logits import softcap
from explorer.tracing.trace import Trace
from explorer.translations import N_


@dataclass(frozen=True)
class AttentionCell:
    """One attention weight, recomputed: weight = exp(score) / Σ exp(scores of the row), over keys up to the query.

    Scores are soft-capped if the model caps them.

    Attributes:
        dot: q·k, unscaled.
        score: q·k / √d.
        capped: the score after soft-capping.
        exp_score, exp_total: numerator and denominator, both divided by exp(largest capped score of the row).
        weight: their quotient, recomputed.
        error: |weight - captured pattern|.
    """

    dot: float
    score: float
    capped: float
    exp_score: float
    exp_total: float
    weight: float
    error: float


def attention_cell(trace: Trace, layer: int, head: int, query: int, key: int) -> AttentionCell:
    """Recompute pattern[query, key] of a head from its queries and keys."""
    q, keys = query_key_vectors(trace, layer, head)
    q, keys = q[query], keys[: query + 1]  # (d,), (query + 1, d)
    dots = keys @ q
    scores = dots / trace.config.divisor
    visible_keys = visibility_mask(trace.config, layer, len(trace))[query, : query + 1]
    capped_scores = softcap(scores, trace.config.score_cap)
    exps = np.exp(np.where(visible_keys, capped_scores - capped_scores[visible_keys].max(), -np.inf))
    weight = exps[key] / exps.sum()
    captured = trace[f"blocks.{layer}.attn.pattern"][head, query, key]
    return AttentionCell(
        dots[key], scores[key], capped_scores[key], exps[key], exps.sum(), weight, abs(weight - captured)
    )


# name -> quantity in a cell of the pattern
PATTERNS = {
    "weight": N_("attention weight"),
    "without_first": N_("weight, the first token left out"),
    "moved": N_("what is moved: weight × length of the value as written"),
    "layer_mean": N_("mean weight of the layer's heads"),
    "layer_max": N_("largest weight of the layer's heads"),
    "chosen_mean": N_("mean weight of the chosen heads"),
    "chosen_max": N_("largest weight of the chosen heads"),
}


def displayed_pattern(
    trace: Trace, layer: int, head: int, kind: str = "weight", chosen_heads: Sequence[tuple[int, int]] = ()
) -> np.ndarray:
    """Return one of `PATTERNS` as a (T, T) array, row = query, column = key.

    Args:
        chosen_heads: (layer, head) pairs; if empty, the given layer and head.
    """
    if kind in ("chosen_mean", "chosen_max"):
        heads = np.stack(
            [trace[f"blocks.{i}.attn.pattern"][j] for i, j in chosen_heads or ((layer, head),)]
        )  # (N, T, T)
        return heads.max(0) if kind == "chosen_max" else heads.mean(0)
    patterns = trace[f"blocks.{layer}.attn.pattern"]  # (H, T, T)
    if kind == "without_first":
        return without_first_key(patterns[head])
    if kind == "moved":
        return patterns[head] * projected_value_norms(trace, layer, head)
    if kind == "layer_mean":
        return patterns.mean(0)
    return patterns.max(0) if kind == "layer_max" else patterns[head]


def projected_value_norms(trace: Trace, layer: int, head: int) -> np.ndarray:
    """Return ‖W_O v‖₂ of every key, (T,), before any norm.

    Attention weights show which keys a head attends to; these norms show how long the vector is that each key
    contributes (Kobayashi et al. 2020, eq. 8).
    """
    values = trace.head_value(f"blocks.{layer}.attn.v", head)  # (T, d)
    d = values.shape[1]
    output = trace.weights[f"blocks.{layer}.attn.o_proj.weight"][:, head * d : (head + 1) * d]  # (D, d)
    return np.linalg.norm(values @ output.T, axis=-1)


def score_by_dimension(trace: Trace, layer: int, head: int, query: int, key: int) -> np.ndarray:
    """Return the terms qᵢ kᵢ / √d of each dimension, (d,), which sum to the score."""
    q, keys = query_key_vectors(trace, layer, head)
    return q[query] * keys[key] / trace.config.divisor


def query_key_vectors(trace: Trace, layer: int, head: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the queries and keys (T, d) whose products are the scores, after rotation if the layer uses RoPE."""
    suffix = "_rot" if f"blocks.{layer}.attn.q_rot" in trace else ""
    names = (f"blocks.{layer}.attn.q{suffix}", f"blocks.{layer}.attn.k{suffix}")
    q, k = (trace.head_value(name, head).astype(np.float64) for name in names)
    return q, k


@dataclass(frozen=True)
class AttentionStages:
    """The stages of one query's attention, from dot products to weights, over all T keys.

    Attributes:
        dots: (T,) q·k.
        scores: (T,) q·k / √d.
        capped: (T,) the scores after soft-capping.
        allowed: (T,) booleans, False for keys that the mask hides: after the query, and before the layer's window.
        weights: (T,) softmax of the allowed capped scores; they sum to 1.
        output_norms: (T,) ‖W_O v‖ of each key.
    """

    dots: np.ndarray
    scores: np.ndarray
    capped: np.ndarray
    allowed: np.ndarray
    weights: np.ndarray
    output_norms: np.ndarray


def query_attention_stages(trace: Trace, layer: int, head: int, query: int) -> AttentionStages:
    """Return the stages of a head's attention from one query, each with one number per key (T,)."""
    scores = trace[f"blocks.{layer}.attn.scores"][head, query]
    return AttentionStages(
        dots=scores * trace.config.divisor,
        scores=scores,
        capped=softcap(scores, trace.config.score_cap),
        allowed=visibility_mask(trace.config, layer, len(trace))[query],
        weights=trace[f"blocks.{layer}.attn.pattern"][head, query],
        output_norms=projected_value_norms(trace, layer, head),
    )
