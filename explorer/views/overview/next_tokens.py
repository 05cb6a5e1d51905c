"""The next tokens on the map of a model, with their probabilities."""

from typing import NamedTuple

import numpy as np

from explorer.analysis.next_token import likeliest, next_token, ranking
from explorer.explain.notation import full
from explorer.language import _
from explorer.state.selection import Selection
from explorer.tracing.trace import Trace
from explorer.views.style import shortened

MOST_LISTED = 5  # besides those chosen


class NextToken(NamedTuple):
    """What is told of it and what a click on it selects; the model's probability; and itself."""

    told: str
    selects: dict[str, int]
    probability: float
    token: str


def next_tokens(trace: Trace, selection: Selection) -> list[NextToken]:
    """The likeliest, and those chosen wherever they rank."""
    query = selection.query
    ranked, now = ranking(trace, query), likeliest(trace, query)
    plain, logits = next_token(trace, query).plain, trace.logits.at(query)
    chosen = {ranked[rank - 1] for rank in (selection.target, selection.rival) if rank}
    listed = []
    shown = np.isin(now, list(chosen))
    shown[:MOST_LISTED] = True
    for place in np.flatnonzero(shown).tolist():
        token_id = now[place]
        token = trace.vocabulary[token_id]
        told = _(
            "{token}: rank {rank:,}, probability {probability}\nlogit {logit}\nchoose it to explain it",
            token=shortened(token),
            rank=place + 1,
            probability=full(plain[token_id]),
            logit=full(logits[token_id]),
        )
        selects = {"target": int(np.flatnonzero(ranked == token_id)[0]) + 1}
        listed.append(NextToken(told, selects, float(plain[token_id]), token))
    return listed
