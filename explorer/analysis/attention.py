"""One head's attention, taken apart."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from explorer.analysis.heads import without_first
from explorer.architecture.attention import visible
from explorer.architecture.caps import capped
from explorer.language import N_
from explorer.tracing.trace import Trace


@dataclass(frozen=True)
class AttentionCell:
    """How one weight of a pattern comes about: weight = exp(score) / Σ exp(scores of the row), keys up to the query,
    each score capped where the model caps them.

    Attributes:
        dot: q·k, unscaled.
        score: q·k / √d.
        capped: the score as a cap leaves it.
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
    q, keys = compared_vectors(trace, layer, head)
    q, keys = q[query], keys[: query + 1]  # (d,), (query + 1, d)
    dots = keys @ q
    scores = dots / trace.config.divisor
    seen = visible(trace.config, layer, len(trace))[query, : query + 1]
    within = capped(scores, trace.config.score_cap)
    exps = np.exp(np.where(seen, within - within[seen].max(), -np.inf))
    weight = exps[key] / exps.sum()
    captured = trace[f"blocks.{layer}.attn.pattern"][head, query, key]
    return AttentionCell(dots[key], scores[key], within[key], exps[key], exps.sum(), weight, abs(weight - captured))


# name -> what a cell of the pattern then holds
PATTERNS = {
    "weight": N_("attention weight"),
    "without_first": N_("weight, the first token left out"),
    "moved": N_("what is moved: weight × length of the value as written"),
    "layer_mean": N_("mean weight of the layer's heads"),
    "layer_max": N_("largest weight of the layer's heads"),
    "chosen_mean": N_("mean weight of the chosen heads"),
    "chosen_max": N_("largest weight of the chosen heads"),
}


def shown_pattern(
    trace: Trace, layer: int, head: int, kind: str = "weight", chosen: Sequence[tuple[int, int]] = ()
) -> np.ndarray:
    """(T, T), row = query, column = key: one of `PATTERNS`.

    Args:
        chosen: (layer, head) of the chosen heads; none stands for the one head.
    """
    if kind in ("chosen_mean", "chosen_max"):
        heads = np.stack([trace[f"blocks.{i}.attn.pattern"][j] for i, j in chosen or ((layer, head),)])  # (N, T, T)
        return heads.max(0) if kind == "chosen_max" else heads.mean(0)
    patterns = trace[f"blocks.{layer}.attn.pattern"]  # (H, T, T)
    if kind == "without_first":
        return without_first(patterns[head])
    if kind == "moved":
        return patterns[head] * written_lengths(trace, layer, head)
    if kind == "layer_mean":
        return patterns.mean(0)
    return patterns.max(0) if kind == "layer_max" else patterns[head]


def written_lengths(trace: Trace, layer: int, head: int) -> np.ndarray:
    """(T,) ‖W_O v‖₂ of every key: how long a vector the head writes where it looks at that key alone, before any norm.

    Weights say where a head looks, these how much there is to fetch (Kobayashi et al. 2020, eq. 8).
    """
    values = trace.of_head(f"blocks.{layer}.attn.v", head)  # (T, d)
    d = values.shape[1]
    output = trace.weights[f"blocks.{layer}.attn.o_proj.weight"][:, head * d : (head + 1) * d]  # (D, d)
    return np.linalg.norm(values @ output.T, axis=-1)


def score_by_dimension(trace: Trace, layer: int, head: int, query: int, key: int) -> np.ndarray:
    """(d,) qᵢ kᵢ / √d, which add up to the score."""
    q, keys = compared_vectors(trace, layer, head)
    return q[query] * keys[key] / trace.config.divisor


def compared_vectors(trace: Trace, layer: int, head: int) -> tuple[np.ndarray, np.ndarray]:
    """The queries and keys (T, d) whose products are the scores: turned ones where the model turns them."""
    suffix = "_rot" if f"blocks.{layer}.attn.q_rot" in trace else ""
    names = (f"blocks.{layer}.attn.q{suffix}", f"blocks.{layer}.attn.k{suffix}")
    q, k = (trace.of_head(name, head).astype(np.float64) for name in names)
    return q, k


@dataclass(frozen=True)
class Stages:
    """One query's way from products to what is fetched, over all T keys.

    Attributes:
        dots: (T,) q·k.
        scores: (T,) q·k / √d.
        capped: (T,) the same as a cap leaves them.
        allowed: (T,) booleans, False for keys that the mask hides: after the query, and before the layer's window.
        weights: (T,) softmax of the allowed capped scores; they sum to 1.
        lengths: (T,) ‖W_O v‖ of each key.
    """

    dots: np.ndarray
    scores: np.ndarray
    capped: np.ndarray
    allowed: np.ndarray
    weights: np.ndarray
    lengths: np.ndarray


def stages(trace: Trace, layer: int, head: int, query: int) -> Stages:
    scores = trace[f"blocks.{layer}.attn.scores"][head, query]
    return Stages(
        dots=scores * trace.config.divisor,
        scores=scores,
        capped=capped(scores, trace.config.score_cap),
        allowed=visible(trace.config, layer, len(trace))[query],
        weights=trace[f"blocks.{layer}.attn.pattern"][head, query],
        lengths=written_lengths(trace, layer, head),
    )
