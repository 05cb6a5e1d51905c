"""What the other run predicts of the next token, beside the first."""

from dataclasses import dataclass

import numpy as np

from explorer.analysis.divergence import kl_divergence
from explorer.analysis.next_token import NextToken
from explorer.explain.notation import number, quoted
from explorer.language import _
from explorer.web.widgets.distribution.column import Column


@dataclass(frozen=True)
class OtherNextToken:
    """The other run's prediction after the token that stands for the chosen one.

    Attributes:
        plain: the model's probabilities on the first run's vocabulary (V,); NaN of tokens that the other has not.
        drawn: text of the token that the same random number draws of it, with the same settings.
        after: text of the token that it comes after.
        position: of that.
    """

    plain: np.ndarray
    drawn: str
    after: str
    position: int


def beside(plain: np.ndarray) -> Column:
    """B's probabilities, a number a token."""

    def told(row) -> str:
        value = plain[row.token_id]
        if np.isnan(value):
            return _("the model of B has no such token")
        return _("B: probability {probability}, before temperature and filters", probability=number(value))

    return Column(
        "other",
        _("B:\nmodel"),
        _("What the other run’s model gives the token, before temperature and filters."),
        cell=lambda row: "–" if np.isnan(plain[row.token_id]) else number(plain[row.token_id]),
        arithmetic=told,
    )


def other_words(prediction: NextToken, other: OtherNextToken) -> str:
    """Where the random number falls in B, and how far the two distributions are from each other."""
    drawn = _(
        "In B, after {after} (position {position}), the same random number falls on {token}.",
        after=quoted(other.after),
        position=other.position,
        token=quoted(other.drawn),
    )
    if np.isnan(other.plain).any():
        return _("{drawn} The models have different tokens: no divergence.", drawn=drawn)
    return _(
        "{drawn} Divergence of the models’ probabilities: KL(A‖B) = {there} bits, KL(B‖A) = {back} bits.",
        drawn=drawn,
        there=number(kl_divergence(prediction.plain, other.plain)),
        back=number(kl_divergence(other.plain, prediction.plain)),
    )
