"""Head scores: previous-token, induction and similar attention heads."""

from collections.abc import Callable
from weakref import WeakKeyDictionary

import numpy as np

from explorer.architecture.attention import first_visible
from explorer.tracing.trace import Trace
from explorer.translations import N_

SCORE_NAMES = {
    "previous_token": N_("previous token"),
    "first_token": N_("first token"),
    "self": N_("self"),
    "duplicate_token": N_("duplicate token"),
    "induction": N_("induction"),
    "spread": N_("spread"),
}
# name -> what a head with a high score does
HEAD_SCORES = {
    "previous_token": N_("looks at the token before"),
    "first_token": N_("looks at the first token"),
    "self": N_("looks at the token itself"),
    "duplicate_token": N_("looks at earlier occurrences of the same token"),
    "induction": N_("looks at what followed the last earlier occurrence of the same token"),
    "spread": N_("looks at many tokens evenly (entropy)"),
}


def head_scores(trace: Trace, name: str, hide_first: bool = False) -> np.ndarray:
    """Return the score of every head, (L, H) in [0, 1], a mean over queries without the first.

    Most are attention to target keys: "previous_token" to q - 1, "first_token" to 0, "self" to q;
    "duplicate_token" to all earlier positions of the query's own token, over queries that have some; "induction"
    to the position after the last of those, over queries for which that is not their own (Elhage et al. 2021;
    Olsson et al. 2022), as in `model.training.head_scores`. "spread" is the entropy of the row divided by that of
    uniform attention, log₂ of the number of visible tokens; 0 for a window of one token. NaN if no query counts.

    Args:
        hide_first: leave out attention to the first token and renormalise the rest: many heads attend there by
            default.
    """
    scores = SCORES_BY_TRACE.setdefault(trace, {})
    if (name, hide_first) not in scores:
        measure = normalised_entropy if name == "spread" else mean_target_attention(target_mask(trace, name)[1:])
        visible_counts, layer_scores = num_visible(trace)[:, 1:], []
        for layer, patterns in enumerate(trace.layers("blocks.*.attn.pattern")):
            patterns = (without_first(patterns) if hide_first else patterns)[:, 1:]  # (H, T - 1, T)
            # One head at a time: a whole layer in float64 would take several times the memory of the layer.
            heads = [
                measure(patterns[[head]].astype(np.float64), visible_counts[layer]) for head in range(len(patterns))
            ]
            layer_scores.append(np.concatenate(heads))
        scores[name, hide_first] = np.stack(layer_scores)
        scores[name, hide_first].flags.writeable = False
    return scores[name, hide_first]


SCORES_BY_TRACE: WeakKeyDictionary[Trace, dict[tuple[str, bool], np.ndarray]] = WeakKeyDictionary()


def normalised_entropy(rows: np.ndarray, visible_counts: np.ndarray) -> np.ndarray:
    """Return the mean entropy of attention rows (H, T - 1, T) relative to uniform attention, (H,)."""
    logs = np.log2(rows, out=np.zeros_like(rows), where=rows > 0)
    return mean(-(rows * logs).sum(-1) / np.log2(visible_counts))


def mean_target_attention(targets: np.ndarray) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    """Return a function for the mean attention to targets (T - 1, T), over the queries that have targets."""
    counts = targets.any(-1)
    return lambda rows, seen: mean((rows[:, counts] * targets[counts]).sum(-1))


def num_visible(trace: Trace) -> np.ndarray:
    """Return the number of visible tokens of each query in each layer, (L, T).

    At least 2, except for the first query, so that the logarithm is not 0.
    """
    layers, queries = range(trace.config.num_layers), np.arange(len(trace))
    counts = np.stack([queries + 1 - [first_visible(trace.config, i, query) for query in queries] for i in layers])
    return np.maximum(counts, np.minimum(queries + 1, 2))


def target_mask(trace: Trace, name: str) -> np.ndarray:
    """Return the target keys of a head score as (T, T) booleans: query, key."""
    query, key = np.indices((len(trace), len(trace)))
    ids = np.array(trace.token_ids)
    duplicate = (ids[:, None] == ids) & (key < query)
    last = np.where(duplicate, key, -1).max(-1, keepdims=True)  # (T, 1), -1 where the token is new
    return {
        "previous_token": key == query - 1,
        "first_token": key == 0,
        "self": key == query,
        "duplicate_token": duplicate,
        "induction": (last >= 0) & (key == last + 1) & (key < query),
    }[name]


def without_first(patterns: np.ndarray) -> np.ndarray:
    """Return patterns (..., T, T) without the first column, rows renormalised; 0 if nothing else was visible."""
    rest = patterns.copy()
    rest[..., 0] = 0
    total = rest.sum(-1, keepdims=True)
    return np.divide(rest, total, out=np.zeros_like(rest), where=total > 1e-12)


def mean(values: np.ndarray) -> np.ndarray:
    """Return the mean over the last axis; NaN without a warning if it is empty."""
    return values.mean(-1) if values.shape[-1] else np.full(values.shape[:-1], np.nan)
