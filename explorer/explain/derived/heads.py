"""Derivations of head scores."""

import math

import numpy as np

from explorer.analysis.heads import HEAD_SCORES, head_scores, target_mask
from explorer.architecture.attention import first_visible_key
from explorer.explain.calculation import read_input
from explorer.explain.clicked_point import get_element
from explorer.explain.derivation import Derivation
from explorer.explain.derived.arithmetic import mean
from explorer.explain.source_line import SourceLine
from explorer.tracing.trace import Trace
from explorer.translations import N_, _, translate


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
        SourceLine(f"{score.measure.__module__.replace('.', '/')}.py", "return ")
        if score.measure
        else SourceLine("explorer/analysis/heads.py", "(rows[:, counts] * targets"),
    )


SCORE_LOCATION = N_("layer {layer} head {head}: how much it {looks}")
SCORE_LOCATION_WITHOUT_FIRST = N_("layer {layer} head {head}: how much it {looks}, the first token left out")
