"""Derivations of head scores."""

import math
from collections.abc import Sequence

from explorer.analysis.heads import HEAD_SCORES, head_scores
from explorer.architecture.attention import first_visible
from explorer.explain.calculation import read_input
from explorer.explain.derivation import Derivation
from explorer.explain.derived.arithmetic import mean
from explorer.explain.point import get_element
from explorer.explain.source_line import SourceLine
from explorer.tracing.trace import Trace
from explorer.translations import N_, _, translate


def head_score(trace: Trace, name: str, hide_first: bool, layer: int, head: int) -> Derivation | None:
    """Derive a head's score, one of `HEAD_SCORES`; None if no query of this run counts."""
    value = get_element(head_scores(trace, name, hide_first), layer, head)
    if math.isnan(value):
        return None
    rows, read = read_input(trace, f"blocks.{layer}.attn.pattern", head)
    query_scores = []
    for query in range(1, len(trace)):
        weights, first = rows[query, : query + 1].tolist(), first_visible(trace.config, layer, query)
        if hide_first:
            rest = sum(weights[1:])
            weights = [0.0, *(w / rest if rest > 1e-12 else 0.0 for w in weights[1:])]
        if name == "spread":
            query_scores.append(-sum(w * math.log2(w) for w in weights if w > 0) / math.log2(max(2, query + 1 - first)))
        elif keys := target_keys(trace.token_ids, name, query):
            query_scores.append(sum(weights[key] for key in keys))
    title, symbols = SCORE_FORMULAS[name]
    return Derivation(
        translate(title),
        translate(
            SCORE_LOCATION_WITHOUT_FIRST if hide_first else SCORE_LOCATION,
            layer=layer,
            head=head,
            looks=translate(HEAD_SCORES[name]),
        ),
        value,
        mean(translate(symbols), query_scores, (read,), _("score")),
        SourceLine(
            "explorer/analysis/heads.py",
            "return mean(-(rows * logs)" if name == "spread" else "mean((rows[:, counts] * targets",
        ),
    )


SCORE_LOCATION = N_("layer {layer} head {head}: how much it {looks}")
SCORE_LOCATION_WITHOUT_FIRST = N_("layer {layer} head {head}: how much it {looks}, the first token left out")
# score -> what it is called, and its formula
SCORE_FORMULAS = {
    "previous_token": (N_("previous token score"), N_("score = mean over queries of the weight of the token before")),
    "first_token": (N_("first token score"), N_("score = mean over queries of the weight of the first token")),
    "self": (N_("self score"), N_("score = mean over queries of the weight of the token itself")),
    "duplicate_token": (
        N_("duplicate token score"),
        N_("score = mean over queries of the weight of earlier occurrences of the same token"),
    ),
    "induction": (
        N_("induction score"),
        N_("score = mean over queries of the weight of what followed the last earlier occurrence of the same token"),
    ),
    "spread": (
        N_("spread score"),
        N_("score = mean over queries of the entropy of its weights / log₂ of how many"),
    ),
}


def target_keys(ids: Sequence[int], name: str, query: int) -> list[int]:
    """Return the keys whose weights a score adds up."""
    if name == "duplicate_token":
        return [key for key in range(query) if ids[key] == ids[query]]
    if name == "induction":
        *_earlier, last = -1, *(key for key in range(query) if ids[key] == ids[query])
        return [last + 1] if 0 <= last < query - 1 else []
    return [{"previous_token": query - 1, "first_token": 0, "self": query}[name]]
