"""One cell of an attention pattern, from its score."""

from dataclasses import dataclass

import numpy as np

from explorer.trace import Trace


@dataclass(frozen=True)
class AttentionCell:
    """How one weight of a pattern comes about: weight = exp(score) / Σ exp(scores of the row), keys up to the query.

    Attributes:
        dot: q·k, unscaled.
        score: q·k / √d.
        exp_score, exp_total: numerator and denominator, both divided by exp(largest score of the row).
        weight: their quotient, recomputed.
        error: |weight - captured pattern|.
    """

    dot: float
    score: float
    exp_score: float
    exp_total: float
    weight: float
    error: float


def attention_cell(trace: Trace, layer: int, head: int, query: int, key: int) -> AttentionCell:
    """Recompute pattern[query, key] of a head from its queries and keys."""
    suffix = "_rot" if f"blocks.{layer}.attn.q_rot" in trace else ""
    q = trace.of_head(f"blocks.{layer}.attn.q{suffix}", head)[query].astype(np.float64)  # (d,)
    keys = trace.of_head(f"blocks.{layer}.attn.k{suffix}", head)[: query + 1].astype(np.float64)  # (query + 1, d)
    dots = keys @ q
    scores = dots / np.sqrt(len(q))
    exps = np.exp(scores - scores.max())
    weight = exps[key] / exps.sum()
    captured = trace[f"blocks.{layer}.attn.pattern"][head, query, key]
    return AttentionCell(dots[key], scores[key], exps[key], exps.sum(), weight, abs(weight - captured))
