"""The selection in the second run that corresponds to one in the first."""

from dataclasses import replace

from explorer.analysis.next_token import ranking_without_interventions
from explorer.state.selection import Selection
from explorer.tracing.comparison import Comparison
from explorer.views.target_token import target_and_contrast


def selection_in_other(comparison: Comparison, selection: Selection) -> Selection:
    """Return the corresponding selection in the other run.

    Positions are the aligned ones, or the nearest before them. Target and contrast are the tokens of the same
    text, at their ranks there. All else is kept, or clamped to what the other run has.
    """
    alignment, other = comparison.alignment, comparison.other
    query, key = (alignment.nearest_aligned(position) for position in (selection.query, selection.key))
    other_selection = replace(selection, query=query, key=key).clamp_to_trace(other)
    target_id, contrast_id = target_and_contrast(comparison.trace, selection)
    ranks = {"target": rank_in_other(comparison, other_selection.query, target_id)}
    if contrast_id is not None:
        ranks["rival"] = rank_in_other(comparison, other_selection.query, contrast_id)
    return replace(other_selection, **{name: rank for name, rank in ranks.items() if rank})


def rank_in_other(comparison: Comparison, query: int, token_id: int) -> int:
    """Return the rank of a token of the first run's vocabulary among the other's next tokens, from 1.

    0 if the other vocabulary has no token of that text.
    """
    first, second = comparison.trace.vocabulary, comparison.other.vocabulary
    if first is not second and first != second:
        texts = list(second)
        if first[token_id] not in texts:
            return 0
        token_id = texts.index(first[token_id])
    return int((ranking_without_interventions(comparison.other, query) == token_id).argmax()) + 1
