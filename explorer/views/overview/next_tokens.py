"""Next tokens on the map of a model, with their probabilities."""

from typing import NamedTuple

import numpy as np

from explorer.analysis.next_token import next_token_distribution, next_token_ranking, ranking_without_interventions
from explorer.explain.notation import format_six_digits
from explorer.state.selection import Selection
from explorer.tracing.trace import Trace
from explorer.translations import _
from explorer.views.style import shorten_token

MAX_LISTED = 5  # besides those chosen


class NextTokenBox(NamedTuple):
    """A next token in the list: hover text, what a click selects, probability and token."""

    hover_text: str
    selects: dict[str, int]
    probability: float
    token: str


def next_token_boxes(trace: Trace, selection: Selection) -> list[NextTokenBox]:
    """Return the most probable next tokens, and the chosen ones whatever their rank."""
    query = selection.query
    baseline_ranking, current_ranking = ranking_without_interventions(trace, query), next_token_ranking(trace, query)
    probabilities, logits = next_token_distribution(trace, query).plain, trace.logits.row(query)
    chosen_ids = {baseline_ranking[rank - 1] for rank in (selection.target, selection.rival) if rank}
    listed = []
    is_listed = np.isin(current_ranking, list(chosen_ids))
    is_listed[:MAX_LISTED] = True
    for index in np.flatnonzero(is_listed).tolist():
        token_id = current_ranking[index]
        token = trace.vocabulary[token_id]
        hover_text = _(
            "{token}: rank {rank:,}, probability {probability}\nlogit {logit}\nchoose it to explain it",
            token=shorten_token(token),
            rank=index + 1,
            probability=format_six_digits(probabilities[token_id]),
            logit=format_six_digits(logits[token_id]),
        )
        selects = {"target": int(np.flatnonzero(baseline_ranking == token_id)[0]) + 1}
        listed.append(NextTokenBox(hover_text, selects, float(probabilities[token_id]), token))
    return listed
