"""What attention heads do, in numbers."""

import math
from collections.abc import Sequence

from explorer.analysis.heads import HEAD_SCORES, head_scores
from explorer.architecture.attention import first_visible
from explorer.explain.analysed.arithmetic import mean
from explorer.explain.derivation import Derivation
from explorer.explain.point import element
from explorer.explain.source import Source
from explorer.explain.working import take
from explorer.language import N_, _, look_up
from explorer.tracing.trace import Trace


def head_score(trace: Trace, name: str, hide_first: bool, layer: int, head: int) -> Derivation | None:
    """What a head does, in a number: one of `HEAD_SCORES`; None where no query of this run counts."""
    value = element(head_scores(trace, name, hide_first), layer, head)
    if math.isnan(value):
        return None
    rows, read = take(trace, f"blocks.{layer}.attn.pattern", head)
    each = []
    for query in range(1, len(trace)):
        weights, first = rows[query, : query + 1].tolist(), first_visible(trace.config, layer, query)
        if hide_first:
            rest = sum(weights[1:])
            weights = [0.0, *(w / rest if rest > 1e-12 else 0.0 for w in weights[1:])]
        if name == "spread":
            each.append(-sum(w * math.log2(w) for w in weights if w > 0) / math.log2(max(2, query + 1 - first)))
        elif keys := looked_at(trace.token_ids, name, query):
            each.append(sum(weights[key] for key in keys))
    title, symbols = MEANT[name]
    return Derivation(
        look_up(title),
        look_up(HIDING_FIRST if hide_first else OF_ALL, layer=layer, head=head, looks=look_up(HEAD_SCORES[name])),
        value,
        mean(look_up(symbols), each, (read,), _("score")),
        Source(
            "explorer/analysis/heads.py",
            "return mean(-(rows * logs)" if name == "spread" else "mean((rows[:, counts] * targets",
        ),
    )


OF_ALL = N_("layer {layer} head {head}: how much it {looks}")
HIDING_FIRST = N_("layer {layer} head {head}: how much it {looks}, the first token left out")
# score -> what it is called, and its formula
MEANT = {
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


def looked_at(ids: Sequence[int], name: str, query: int) -> list[int]:
    """The keys whose weights a score adds up."""
    if name == "duplicate_token":
        return [key for key in range(query) if ids[key] == ids[query]]
    if name == "induction":
        *_earlier, last = -1, *(key for key in range(query) if ids[key] == ids[query])
        return [last + 1] if 0 <= last < query - 1 else []
    return [{"previous_token": query - 1, "first_token": 0, "self": query}[name]]
