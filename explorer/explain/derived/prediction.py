"""Derivations of token probabilities and of the measures in `PREDICTION_MEASURES`."""

from explorer.analysis.next_token import actual_token_ranks, entropy, next_token_distribution, surprisal
from explorer.explain.calculation import read_input
from explorer.explain.clicked_point import get_element
from explorer.explain.derivation import Derivation
from explorer.explain.derived import distribution
from explorer.explain.labels import format_token_id, format_token_position
from explorer.explain.source_line import SourceLine
from explorer.tracing.trace import Trace
from explorer.translations import N_, _, translate

NEXT, LOGITS = "explorer/analysis/next_token.py", "explorer/tracing/logits.py"
SURPRISAL = SourceLine(NEXT, "return np.concatenate([[np.nan], (trace.logits.log_sum_exp")
# measure -> its name, the analysis, how it is worked out again, and the line of the analysis
PREDICTION_MEASURES = {
    "surprisal": (N_("surprisal"), surprisal, distribution.surprisal, SURPRISAL),
    "entropy": (N_("entropy"), entropy, distribution.entropy, SourceLine(LOGITS, "bits = (np.log(sums) - np.einsum(")),
    "rank": (
        N_("rank"),
        actual_token_ranks,
        distribution.rank,
        SourceLine(LOGITS, "(logits > actual).sum(-1) + 1"),
    ),
}


def prediction_measure(trace: Trace, position: int, measure: str) -> Derivation | None:
    """Derive one of `PREDICTION_MEASURES` of a token; None for the first token."""
    name, analysis, calculate, source = PREDICTION_MEASURES[measure]
    displayed_value = get_element(analysis(trace), position)
    if position == 0:
        return None
    logits, read = read_input(trace, "logits", position - 1)
    token_id = trace.token_ids[position]
    token, before = format_token_position(trace, position), format_token_position(trace, position - 1)
    location = _("of {token}, id {token_id}, after {before}", token=token, token_id=token_id, before=before)
    return Derivation(translate(name), location, displayed_value, calculate(logits, token_id, (read,)), source)


def token_probability(
    trace: Trace, position: int, token_id: int, displayed_value: float, source: SourceLine
) -> Derivation:
    """Derive a token's probability after a position, given the displayed value and its source line."""
    logits, read = read_input(trace, "logits", position)
    working = distribution.probability(logits, token_id, (read,))
    location = _(
        "of {token} after {before}",
        token=format_token_id(trace, token_id),
        before=format_token_position(trace, position),
    )
    return Derivation(_("probability"), location, displayed_value, working, source)


def next_token_probability(trace: Trace, position: int, token_id: int) -> Derivation:
    """Derive a token's probability after a position."""
    displayed_value = float(next_token_distribution(trace, position).plain[token_id])
    return token_probability(
        trace, position, token_id, displayed_value, SourceLine(NEXT, "plain=sampling_distribution(logits)")
    )


def actual_token_probability(trace: Trace, position: int) -> Derivation:
    """Derive the probability of the actual next token."""
    displayed_value = 2 ** -get_element(surprisal(trace), position + 1)
    return token_probability(trace, position, trace.token_ids[position + 1], displayed_value, SURPRISAL)
