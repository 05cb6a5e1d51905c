"""The other run's prediction of the next token, beside the first run's."""

from dataclasses import dataclass

import numpy as np

from explorer.analysis.divergence import kl_divergence
from explorer.analysis.next_token import NextTokenDistribution
from explorer.explain.notation import format_number, quote_token
from explorer.translations import _
from explorer.web.widgets.distribution.column import StageColumn


@dataclass(frozen=True)
class OtherRunPrediction:
    """The other run's prediction after the aligned token.

    Attributes:
        plain: its probabilities on the first run's vocabulary (V,); NaN for tokens that the other lacks.
        sampled_token: text of the token sampled with the same random number and settings.
        after: text of the aligned token.
        position: of the aligned token.
    """

    plain: np.ndarray
    sampled_token: str
    after: str
    position: int


def other_run_column(plain: np.ndarray) -> StageColumn:
    """Return the column of B's probabilities."""

    def explain(row) -> str:
        value = plain[row.token_id]
        if np.isnan(value):
            return _("the model of B has no such token")
        return _("B: probability {probability}, before temperature and filters", probability=format_number(value))

    return StageColumn(
        "other",
        _("B:\nmodel"),
        _("What the other run’s model gives the token, before temperature and filters."),
        cell=lambda row: "–" if np.isnan(plain[row.token_id]) else format_number(plain[row.token_id]),
        arithmetic=explain,
    )


def other_run_summary(prediction: NextTokenDistribution, other: OtherRunPrediction) -> str:
    """Return the token that the same random number selects in B, and the divergence of the distributions, as text."""
    sampled_text = _(
        "In B, after {after} (position {position}), the same random number falls on {token}.",
        after=quote_token(other.after),
        position=other.position,
        token=quote_token(other.sampled_token),
    )
    if np.isnan(other.plain).any():
        return _("{drawn} The models have different tokens: no divergence.", drawn=sampled_text)
    return _(
        "{drawn} Divergence of the models’ probabilities: KL(A‖B) = {there} bits, KL(B‖A) = {back} bits.",
        drawn=sampled_text,
        there=format_number(kl_divergence(prediction.plain, other.plain)),
        back=format_number(kl_divergence(other.plain, prediction.plain)),
    )
