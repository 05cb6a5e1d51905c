"""Scores of all attention heads of a run."""

from collections.abc import Callable
from weakref import WeakKeyDictionary

import numpy as np

from explorer.analysis.head_scores import HEAD_SCORES
from explorer.architecture.attention import first_visible_key
from explorer.tracing.trace import Trace


def head_scores(trace: Trace, name: str, hide_first: bool = False) -> np.ndarray:
    """Return one of `HEAD_SCORES` of every head, (L, H) in [0, 1], a mean over queries without the first.

    NaN if no query counts.

    Args:
        hide_first: leave out attention to the first token and renormalise the rest: many heads attend there by
            default.
    """
    scores = SCORES_BY_TRACE.setdefault(trace, {})
    if (name, hide_first) not in scores:
        measure = HEAD_SCORES[name].measure
        query_scores = measure or target_attention(target_mask(trace, name)[1:])
        visible_counts, layer_scores = num_visible(trace)[:, 1:], []
        for layer, patterns in enumerate(trace.layers("blocks.*.attn.pattern")):
            patterns = (without_first_key(patterns) if hide_first else patterns)[:, 1:]  # (H, T - 1, T)
            # One head at a time: a whole layer in float64 would take several times the memory of the layer.
            heads = [
                last_axis_mean(query_scores(patterns[[head]].astype(np.float64), visible_counts[layer]))
                for head in range(len(patterns))
            ]
            layer_scores.append(np.concatenate(heads))
        scores[name, hide_first] = np.stack(layer_scores)
        scores[name, hide_first].flags.writeable = False
    return scores[name, hide_first]


SCORES_BY_TRACE: WeakKeyDictionary[Trace, dict[tuple[str, bool], np.ndarray]] = WeakKeyDictionary()


def target_attention(targets: np.ndarray) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    """Return a function for the attention to targets (T - 1, T) of each query that has some."""
    counts = targets.any(-1)
    return lambda rows, visible_counts: (rows[:, counts] * targets[counts]).sum(-1)


def num_visible(trace: Trace) -> np.ndarray:
    """Return the number of visible tokens of each query in each layer, (L, T).

    At least 2, except for the first query, so that the logarithm is not 0.
    """
    layers, queries = range(trace.config.num_layers), np.arange(len(trace))
    counts = np.stack([queries + 1 - [first_visible_key(trace.config, i, query) for query in queries] for i in layers])
    return np.maximum(counts, np.minimum(queries + 1, 2))


def target_mask(trace: Trace, name: str) -> np.ndarray | None:
    """Return the target keys of a head score as (T, T) booleans: query, key; None for a score without."""
    targets = HEAD_SCORES[name].targets
    return targets(np.array(trace.token_ids)) if targets else None


def without_first_key(patterns: np.ndarray) -> np.ndarray:
    """Return patterns (..., T, T) without the first column, rows renormalised; 0 if nothing else was visible."""
    rest = patterns.copy()
    rest[..., 0] = 0
    total = rest.sum(-1, keepdims=True)
    return np.divide(rest, total, out=np.zeros_like(rest), where=total > 1e-12)


def last_axis_mean(values: np.ndarray) -> np.ndarray:
    """Return the mean over the last axis; NaN without a warning if it is empty."""
    return values.mean(-1) if values.shape[-1] else np.full(values.shape[:-1], np.nan)
