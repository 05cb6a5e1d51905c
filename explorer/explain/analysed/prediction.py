"""Numbers worked out of the model's predictions."""

from explorer.analysis.next_token import entropy, next_token, rank, surprisal
from explorer.explain.analysed import distribution
from explorer.explain.derivation import Derivation
from explorer.explain.place import at, of_id
from explorer.explain.point import element
from explorer.explain.source import Source
from explorer.explain.working import take
from explorer.tracing.trace import Trace

NEXT = "explorer/analysis/next_token.py"
# name -> the analysis, how it is worked out again, and the line of the analysis
PREDICTED = {
    "surprisal": (surprisal, distribution.surprisal, "return np.concatenate([[np.nan], surprisal_of("),
    "entropy": (entropy, distribution.entropy, "bits = (np.log(total) - np.einsum("),
    "rank": (rank, distribution.rank, "return np.concatenate([[np.nan], (logits > actual[:, None])"),
}


def predicted(trace: Trace, position: int, measure: str) -> Derivation | None:
    """How well a token was predicted, one of `PREDICTED`; None of the first, which nothing precedes."""
    analysis, work_out, line = PREDICTED[measure]
    drawn = element(analysis(trace), position)
    if position == 0:
        return None
    logits, read = take(trace, "logits", position - 1)
    token_id = trace.token_ids[position]
    return Derivation(
        measure,
        f"of {at(trace, position)}, id {token_id}, after {at(trace, position - 1)}",
        drawn,
        work_out(logits, token_id, (read,)),
        Source(NEXT, line),
    )


def probability(trace: Trace, position: int, token_id: int, drawn: float, source: Source) -> Derivation:
    """Of a token after a position, as it is drawn and by the line that works it out."""
    logits, read = take(trace, "logits", position)
    working = distribution.probability(logits, token_id, (read,))
    return Derivation("probability", f"of {of_id(trace, token_id)} after {at(trace, position)}", drawn, working, source)


def next_token_probability(trace: Trace, position: int, token_id: int) -> Derivation:
    drawn = float(next_token(trace, position).plain[token_id])
    return probability(trace, position, token_id, drawn, Source(NEXT, "plain=sampling_distribution(logits)"))


def probability_of_actual(trace: Trace, position: int) -> Derivation:
    """Of the token that does come next."""
    drawn = 2 ** -element(surprisal(trace), position + 1)
    return probability(trace, position, trace.token_ids[position + 1], drawn, Source(NEXT, PREDICTED["surprisal"][2]))
