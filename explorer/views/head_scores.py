"""The field that selects a head score, and texts that compare head scores with chance."""

import numpy as np

from explorer.analysis.head_scores import HEAD_SCORES, ChanceHeadScores
from explorer.explain.notation import format_number
from explorer.state.selection import Selection, SelectionField
from explorer.tracing.trace import Trace
from explorer.translations import N_, _, translate


def head_score_options(trace: Trace, selection: Selection) -> list[tuple[str, str]]:
    """Return the head scores as options with label and description."""
    return [(name, f"{translate(score.label)}: {translate(score.description)}") for name, score in HEAD_SCORES.items()]


HEAD_SCORE_FIELD = SelectionField(
    "head_score", "previous_token", N_("head score"), tuple(HEAD_SCORES), head_score_options
)


NO_REPEATED_TOKEN = N_("no token of this prompt occurs twice")


def uniform_score_text(baseline: ChanceHeadScores) -> str:
    """Format the score of uniform attention; a range where layers differ in the tokens that they can see."""
    minimum, maximum = format_number(baseline.uniform_scores.min()), format_number(baseline.uniform_scores.max())
    return minimum if minimum == maximum else _("{least} to {most}", least=minimum, most=maximum)


def chance_hover(baseline: ChanceHeadScores, exceeds: np.ndarray) -> list[list[str]]:
    """Return each head's hover text on chance: the score of uniform attention and the chance bound, (L, H)."""
    even_text = _("attention spread evenly would have {even}", even=uniform_score_text(baseline))
    if baseline.quantiles is None:
        return [[even_text] * exceeds.shape[1]] * len(exceeds)
    return [
        [
            translate(ABOVE_CHANCE if more else MAY_BE_CHANCE, even=even_text, most=format_number(bound))
            for bound, more in zip(*row, strict=True)
        ]
        for row in zip(baseline.quantiles, exceeds, strict=True)
    ]


ABOVE_CHANCE = N_(
    "{even};<br>weights as sharp as this head’s, but anywhere,<br>stay within {most} in 19 of 20 tries: more than "
    "chance"
)
MAY_BE_CHANCE = N_(
    "{even};<br>weights as sharp as this head’s, but anywhere,<br>stay within {most} in 19 of 20 tries: this may be "
    "chance"
)
