"""Head scores, such as the induction score: how much each head does what it names, and what chance would give."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from explorer.architecture.formulas import first_visible_key, visibility_mask
from explorer.explain.arithmetic import mean
from explorer.explain.derivation import Derivation, get_element, read_input
from explorer.explain.source_code import SourceLine
from explorer.tracing.trace import Trace, cache_per_trace
from explorer.translations import N_, _, translate

FILE = "explorer/analysis/head_scores.py"


@dataclass(frozen=True)
class HeadScore:
    """A head score: a mean over the queries that count, without the first; a head's chance baseline follows from it.

    It has either `targets` or `measure`. Texts are translated on use.

    Attributes:
        name: in URLs and lessons.
        label: short name.
        description: what a head with a high score does, as in "how much it …".
        title: name of a head's score.
        formula: of the mean.
        targets: token ids (T,) -> (T, T) booleans: the keys of each query whose attention is added up. A query
            counts if it has some.
        measure: attention rows (..., T), number of visible keys (...), at least 2 -> (...) score of each query. All
            queries count.
        source: the line that computes it.
    """

    name: str
    label: str
    description: str
    title: str
    formula: str
    targets: Callable[[np.ndarray], np.ndarray] | None = None
    measure: Callable[[np.ndarray, np.ndarray], np.ndarray] | None = None
    source: SourceLine = SourceLine(FILE, "(rows[:, counts] * targets")


def repeated_keys(token_ids: np.ndarray) -> np.ndarray:
    """Return (T, T) booleans: True for the earlier positions of the query's own token."""
    query, key = np.indices((len(token_ids), len(token_ids)))
    return (token_ids[:, None] == token_ids) & (key < query)


def keys_after_last_occurrence(token_ids: np.ndarray) -> np.ndarray:
    """Return (T, T) booleans: True for the position after the last earlier one of the query's token.

    Not where that is the query's own position, as in `model.training.evaluation`.
    """
    query, key = np.indices((len(token_ids), len(token_ids)))
    last = np.where(repeated_keys(token_ids), key, -1).max(-1, keepdims=True)  # (T, 1), -1 where the token is new
    return (last >= 0) & (key == last + 1) & (key < query)


def normalised_entropy(rows: np.ndarray, num_visible: np.ndarray) -> np.ndarray:
    """Return the entropy of attention rows (..., T) relative to uniform attention, (...)."""
    logs = np.log2(rows, out=np.zeros_like(rows), where=rows > 0)
    return -(rows * logs).sum(-1) / np.log2(num_visible)


HEAD_SCORES = {
    score.name: score
    for score in (
        HeadScore(
            name="previous_token",
            label=N_("previous token"),
            description=N_("looks at the token before"),
            title=N_("previous token score"),
            formula=N_("score = mean over all queries but the first of the weight of the token before"),
            targets=lambda token_ids: np.eye(len(token_ids), k=-1, dtype=bool),
        ),
        HeadScore(
            name="first_token",
            label=N_("first token"),
            description=N_("looks at the first token"),
            title=N_("first token score"),
            formula=N_("score = mean over all queries but the first of the weight of the first token"),
            targets=lambda token_ids: np.indices((len(token_ids), len(token_ids)))[1] == 0,
        ),
        HeadScore(
            name="self",
            label=N_("self"),
            description=N_("looks at the token itself"),
            title=N_("self score"),
            formula=N_("score = mean over all queries but the first of the weight of the token itself"),
            targets=lambda token_ids: np.eye(len(token_ids), dtype=bool),
        ),
        HeadScore(
            name="duplicate_token",
            label=N_("duplicate token"),
            description=N_("looks at earlier occurrences of the same token"),
            title=N_("duplicate token score"),
            formula=N_("score = mean over queries of the weight of earlier occurrences of the same token"),
            targets=repeated_keys,
        ),
        HeadScore(
            name="induction",
            label=N_("induction"),
            description=N_("looks at what followed the last earlier occurrence of the same token"),
            title=N_("induction score"),
            formula=N_(
                "score = mean over queries of the weight of what followed the last earlier occurrence of the same token"
            ),
            targets=keys_after_last_occurrence,
        ),
        HeadScore(
            name="spread",
            label=N_("spread"),
            description=N_("looks at many tokens evenly (entropy)"),
            title=N_("spread score"),
            formula=N_("score = mean over all queries but the first of the entropy of its weights / log₂ of how many"),
            measure=normalised_entropy,
            source=SourceLine(FILE, "return -(rows * logs)"),
        ),
    )
}


@cache_per_trace
def head_scores(trace: Trace, name: str, hide_first: bool = False) -> np.ndarray:
    """Return one of `HEAD_SCORES` of every head, (L, H) in [0, 1], read-only, a mean over queries without the first.

    NaN if no query counts.

    Args:
        hide_first: leave out attention to the first token and renormalise the rest: many heads attend there by
            default.
    """
    query_scores = HEAD_SCORES[name].measure or make_target_attention(target_mask(trace, name)[1:])
    visible_counts, layer_scores = num_visible_keys(trace)[:, 1:], []
    for layer, patterns in enumerate(trace.layers("blocks.*.attn.pattern")):
        patterns = (without_first_key(patterns) if hide_first else patterns)[:, 1:]  # (H, T - 1, T)
        # One head at a time: a whole layer in float64 would take several times the memory of the layer.
        heads = [
            last_axis_mean(query_scores(patterns[[head]].astype(np.float64), visible_counts[layer]))
            for head in range(len(patterns))
        ]
        layer_scores.append(np.concatenate(heads))
    scores = np.stack(layer_scores)
    scores.flags.writeable = False
    return scores


def make_target_attention(targets: np.ndarray) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    """Return a function for the attention to targets (T - 1, T) of each query that has some."""
    counts = targets.any(-1)
    return lambda rows, visible_counts: (rows[:, counts] * targets[counts]).sum(-1)


def num_visible_keys(trace: Trace) -> np.ndarray:
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


def count_scored_queries(trace: Trace, name: str) -> int:
    """Return the number of queries that a head score is a mean over."""
    targets = target_mask(trace, name)
    return len(trace) - 1 if targets is None else int(targets[1:].any(-1).sum())


def without_first_key(patterns: np.ndarray) -> np.ndarray:
    """Return patterns (..., T, T) without the first column, rows renormalised; 0 if nothing else was visible."""
    rest = patterns.copy()
    rest[..., 0] = 0
    total = rest.sum(-1, keepdims=True)
    return np.divide(rest, total, out=np.zeros_like(rest), where=total > 1e-12)


def last_axis_mean(values: np.ndarray) -> np.ndarray:
    """Return the mean over the last axis; NaN without a warning if it is empty."""
    return values.mean(-1) if values.shape[-1] else np.full(values.shape[:-1], np.nan)


TRIES, SEED = 100, 0
QUANTILE = 0.95

ROUNDING = 1e-6  # of scores in float32


@dataclass(frozen=True)
class ChanceHeadScores:
    """Head scores expected by chance on the same tokens.

    Attributes:
        uniform_scores: (L,) the score of a head in each layer that attends uniformly to its visible keys.
        quantiles: (L, H) the 95 % quantile of the score over random tries. In each try the targets of every query
            are rolled by a random number of positions around its visible keys, so that the pattern stays as sharp;
            the mean over all such rolls is the uniform score. None for a score that has no target keys.
        queries: number of queries that the score is averaged over.
    """

    uniform_scores: np.ndarray
    quantiles: np.ndarray | None
    queries: int

    def is_exceeded(self, scores: np.ndarray) -> np.ndarray:
        """Return (L, H) booleans: True for scores above the chance level."""
        return np.ones(scores.shape, bool) if self.quantiles is None else scores > self.quantiles + ROUNDING


@cache_per_trace
def chance_head_scores(trace: Trace, name: str, hide_first: bool = False) -> ChanceHeadScores | None:
    """Return the head scores that chance gives on this text, one of `HEAD_SCORES`; None if no query counts."""
    targets = target_mask(trace, name)
    if targets is None:
        if len(trace) < 2:
            return None
        return ChanceHeadScores(
            uniform_attention_measures(trace, HEAD_SCORES[name].measure, hide_first), None, len(trace) - 1
        )
    rows = np.flatnonzero(targets[1:].any(-1)) + 1  # the queries that count, as in `head_scores`
    if not len(rows):
        return None
    targets = targets[rows]  # (Q, T)
    targets[:, : int(hide_first)] = False
    uniform_scores, quantiles = [], []
    for layer, patterns in enumerate(trace.layers("blocks.*.attn.pattern")):
        patterns = without_first_key(patterns) if hide_first else patterns
        first = np.array([max(int(hide_first), first_visible_key(trace.config, layer, query)) for query in rows])
        uniform_scores.append(uniform_attention_score(targets, rows, first))
        quantiles.append(chance_score_quantiles(patterns, targets, rows, first))
    return ChanceHeadScores(np.array(uniform_scores), np.stack(quantiles), len(rows))


def uniform_attention_score(targets: np.ndarray, rows: np.ndarray, first: np.ndarray) -> float:
    """Return the score of uniform attention over the keys from `first` (Q,) to the query."""
    visible_targets = targets & (np.arange(targets.shape[1]) >= first[:, None])
    return float((visible_targets.sum(-1) / np.maximum(rows + 1 - first, 1)).mean())


def chance_score_quantiles(
    patterns: np.ndarray, targets: np.ndarray, rows: np.ndarray, first: np.ndarray
) -> np.ndarray:
    """Return the quantile of the scores over all tries, (H,), for one layer's patterns (H, T, T).

    Args:
        targets: (Q, T) of the queries that count.
        rows: (Q,) positions of these queries.
        first: (Q,) the first visible key of each.
    """
    query, key = np.nonzero(targets & (np.arange(targets.shape[1]) >= first[:, None]))
    visible_counts = np.maximum(rows + 1 - first, 1)
    random, tries = np.random.default_rng(SEED), np.empty((len(patterns), TRIES))
    for i in range(TRIES):
        shifts = random.integers(visible_counts)
        shifted_key = first[query] + (key - first[query] + shifts[query]) % visible_counts[query]
        tries[:, i] = patterns[:, rows[query], shifted_key].sum(-1, dtype=np.float64)
    return np.quantile(tries / len(rows), QUANTILE, axis=-1, method="inverted_cdf")


def uniform_attention_measures(trace: Trace, measure: Callable, hide_first: bool) -> np.ndarray:
    """Return the score of uniform attention in each layer, (L,), of a score without target keys."""
    scores = []
    for layer, visible_counts in enumerate(num_visible_keys(trace)):
        rows = visibility_mask(trace.config, layer, len(trace)).astype(np.float64)
        rows = rows / rows.sum(-1, keepdims=True)
        rows = without_first_key(rows) if hide_first else rows
        scores.append(float(measure(rows[1:], visible_counts[1:]).mean()))
    return np.array(scores)


def head_score(trace: Trace, name: str, hide_first: bool, layer: int, head: int) -> Derivation | None:
    """Derive a head's score, one of `HEAD_SCORES`; None if no query of this run counts."""
    value = get_element(head_scores(trace, name, hide_first), layer, head)
    if math.isnan(value):
        return None
    score, targets = HEAD_SCORES[name], target_mask(trace, name)
    rows, read = read_input(trace, f"blocks.{layer}.attn.pattern", head)
    query_scores = []
    for query in range(1, len(trace)):
        weights, first = rows[query, : query + 1].tolist(), first_visible_key(trace.config, layer, query)
        if hide_first:
            rest = sum(weights[1:])
            weights = [0.0, *(w / rest if rest > 1e-12 else 0.0 for w in weights[1:])]
        if score.measure:
            query_scores.append(float(score.measure(np.array(weights), np.array(max(2, query + 1 - first)))))
        elif (keys := np.flatnonzero(targets[query])).size:
            query_scores.append(sum(weights[key] for key in keys))
    location = SCORE_LOCATION_WITHOUT_FIRST if hide_first else SCORE_LOCATION
    return Derivation(
        translate(score.title),
        translate(location, layer=layer, head=head, looks=translate(score.description)),
        value,
        mean(translate(score.formula), query_scores, (read,), _("score")),
        score.source,
    )


SCORE_LOCATION = N_("layer {layer} head {head}: how much it {looks}")
SCORE_LOCATION_WITHOUT_FIRST = N_("layer {layer} head {head}: how much it {looks}, the first token left out")
