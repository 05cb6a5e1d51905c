"""What is looked at in the second run when something of the first is chosen."""

from dataclasses import replace

from explorer.analysis.next_token import ranking
from explorer.state.selection import Selection
from explorer.tracing.comparison import Comparison
from explorer.views.explained import explained


def selection_in_other(comparison: Comparison, selection: Selection) -> Selection:
    """The tokens that stand for those chosen, or the nearest before them; the same next tokens, by their texts,
    explained, whatever their ranks; and of all else what is the same or nearest."""
    alignment, other = comparison.alignment, comparison.other
    query, key = (alignment.nearest(place) for place in (selection.query, selection.key))
    there = replace(selection, query=query, key=key).within(other)
    target, rival = explained(comparison.trace, selection)
    ranks = {"target": rank_in_other(comparison, there.query, target)}
    if rival is not None:
        ranks["rival"] = rank_in_other(comparison, there.query, rival)
    return replace(there, **{name: rank for name, rank in ranks.items() if rank})


def rank_in_other(comparison: Comparison, query: int, token_id: int) -> int:
    """Of a token of the first run's vocabulary among the other's next tokens, from 1; 0 where the other has none of
    that text."""
    first, second = comparison.trace.vocabulary, comparison.other.vocabulary
    if first is not second and first != second:
        texts = list(second)
        if first[token_id] not in texts:
            return 0
        token_id = texts.index(first[token_id])
    return int((ranking(comparison.other, query) == token_id).argmax()) + 1
