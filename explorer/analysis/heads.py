"""What attention heads do, in numbers."""

from collections.abc import Callable
from weakref import WeakKeyDictionary

import numpy as np

from explorer.architecture.attention import first_visible
from explorer.language import N_
from explorer.tracing.trace import Trace

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
    """The score of every head, (L, H) in [0, 1]: a mean over queries, the first left out as it can only see itself.

    Most are attention paid: "previous_token" to q - 1, "first_token" to 0, "self" to q; "duplicate_token" to all
    earlier positions of the query's own token, over queries that have some; "induction" to the position after the last
    of those, over queries for which that is not their own (Elhage et al. 2021; Olsson et al. 2022), as
    `model.training.head_scores` has it. "spread" is the entropy of the row over that of an even one,
    log₂ of how many tokens the query sees; a window of one alone spreads by 0. NaN where no query counts.

    Args:
        hide_first: leave attention to the first token out and let the rest sum to 1: many heads rest there.
    """
    known = KNOWN.setdefault(trace, {})
    if (name, hide_first) not in known:
        measure = spread if name == "spread" else paid(targets_of(trace, name)[1:])
        seen, found = num_visible(trace)[:, 1:], []
        for layer, patterns in enumerate(trace.layers("blocks.*.attn.pattern")):
            patterns = (without_first(patterns) if hide_first else patterns)[:, 1:]  # (H, T - 1, T)
            # A head at a time: all of a layer in float64 would be several times what a layer takes.
            heads = [measure(patterns[[head]].astype(np.float64), seen[layer]) for head in range(len(patterns))]
            found.append(np.concatenate(heads))
        known[name, hide_first] = np.stack(found)
        known[name, hide_first].flags.writeable = False
    return known[name, hide_first]


KNOWN: WeakKeyDictionary[Trace, dict[tuple[str, bool], np.ndarray]] = WeakKeyDictionary()


def spread(rows: np.ndarray, seen: np.ndarray) -> np.ndarray:
    """(H,) of rows (H, T - 1, T), each over as many tokens as it sees."""
    logs = np.log2(rows, out=np.zeros_like(rows), where=rows > 0)
    return mean(-(rows * logs).sum(-1) / np.log2(seen))


def paid(targets: np.ndarray) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    """The attention paid to targets (T - 1, T), a mean over the queries that have some."""
    counts = targets.any(-1)
    return lambda rows, seen: mean((rows[:, counts] * targets[counts]).sum(-1))


def num_visible(trace: Trace) -> np.ndarray:
    """(L, T) how many tokens a query of each layer sees; at least 2 but of the first, as nothing else can be spread."""
    layers, queries = range(trace.config.num_layers), np.arange(len(trace))
    seen = np.stack([queries + 1 - [first_visible(trace.config, i, query) for query in queries] for i in layers])
    return np.maximum(seen, np.minimum(queries + 1, 2))


def targets_of(trace: Trace, name: str) -> np.ndarray:
    """(T, T) booleans: query, key; where a head of that kind looks."""
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
    """Patterns (..., T, T) without their first column, rows made to sum to 1 again; 0 where nothing else was seen."""
    rest = patterns.copy()
    rest[..., 0] = 0
    total = rest.sum(-1, keepdims=True)
    return np.divide(rest, total, out=np.zeros_like(rest), where=total > 1e-12)


def mean(values: np.ndarray) -> np.ndarray:
    """Over the last axis; NaN, quietly, of nothing."""
    return values.mean(-1) if values.shape[-1] else np.full(values.shape[:-1], np.nan)
