"""The field that selects a head score, which several views share."""

from explorer.analysis.heads import HEAD_SCORES
from explorer.state.selection import Selection, SelectionField
from explorer.tracing.trace import Trace
from explorer.translations import N_, translate


def head_score_options(trace: Trace, selection: Selection) -> list[tuple[str, str]]:
    """Return the head scores as options with label and description."""
    return [(name, f"{translate(score.label)}: {translate(score.description)}") for name, score in HEAD_SCORES.items()]


HEAD_SCORE_FIELD = SelectionField(
    "head_score", "previous_token", N_("head score"), tuple(HEAD_SCORES), head_score_options
)
