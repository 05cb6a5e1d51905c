"""Numbers worked out of the model's predictions."""

from explorer.analysis.next_token import entropy, next_token, rank, surprisal
from explorer.explain.analysed import distribution
from explorer.explain.derivation import Derivation
from explorer.explain.place import at, of_id
from explorer.explain.point import element
from explorer.explain.source import Source
from explorer.explain.working import take
from explorer.language import N_, _, look_up
from explorer.tracing.trace import Trace

NEXT, LOGITS = "explorer/analysis/next_token.py", "explorer/tracing/logits.py"
SURPRISAL = Source(NEXT, "return np.concatenate([[np.nan], (trace.logits.log_sum_exp")
# measure -> its name, the analysis, how it is worked out again, and the line of the analysis
PREDICTED = {
    "surprisal": (N_("surprisal"), surprisal, distribution.surprisal, SURPRISAL),
    "entropy": (N_("entropy"), entropy, distribution.entropy, Source(LOGITS, "bits = (np.log(sums) - np.einsum(")),
    "rank": (
        N_("rank"),
        rank,
        distribution.rank,
        Source(LOGITS, "(logits > actual).sum(-1) + 1"),
    ),
}


def predicted(trace: Trace, position: int, measure: str) -> Derivation | None:
    """How well a token was predicted, one of `PREDICTED`; None of the first, which nothing precedes."""
    name, analysis, work_out, source = PREDICTED[measure]
    drawn = element(analysis(trace), position)
    if position == 0:
        return None
    logits, read = take(trace, "logits", position - 1)
    token_id = trace.token_ids[position]
    token, before = at(trace, position), at(trace, position - 1)
    place = _("of {token}, id {token_id}, after {before}", token=token, token_id=token_id, before=before)
    return Derivation(look_up(name), place, drawn, work_out(logits, token_id, (read,)), source)


def probability(trace: Trace, position: int, token_id: int, drawn: float, source: Source) -> Derivation:
    """Of a token after a position, as it is drawn and by the line that works it out."""
    logits, read = take(trace, "logits", position)
    working = distribution.probability(logits, token_id, (read,))
    place = _("of {token} after {before}", token=of_id(trace, token_id), before=at(trace, position))
    return Derivation(_("probability"), place, drawn, working, source)


def next_token_probability(trace: Trace, position: int, token_id: int) -> Derivation:
    drawn = float(next_token(trace, position).plain[token_id])
    return probability(trace, position, token_id, drawn, Source(NEXT, "plain=sampling_distribution(logits)"))


def probability_of_actual(trace: Trace, position: int) -> Derivation:
    """Of the token that does come next."""
    drawn = 2 ** -element(surprisal(trace), position + 1)
    return probability(trace, position, trace.token_ids[position + 1], drawn, SURPRISAL)
