"""What is said of a second run's next token."""

from types import SimpleNamespace

import numpy as np

from explorer.web.widgets.distribution.other import OtherNextToken, beside, other_words

MINE, THEIRS = np.array([0.5, 0.25, 0.25]), np.array([0.75, 0.125, 0.125])


def test_divergences_are_told_each_way():
    """Worked out by hand: ½ log₂ ⅔ + ½ log₂ 2 from A to B, ¾ log₂ 1½ − ¼ log₂ 2 back."""
    told = other_words(SimpleNamespace(plain=MINE), OtherNextToken(THEIRS, " owl", " the", 7))
    assert "after “·the” (position 7), the same random number falls on “·owl”" in told
    assert "KL(A‖B) = 0.208 bits, KL(B‖A) = 0.189 bits" in told


def test_a_token_that_b_has_not_is_said_to_be_missing():
    theirs = np.array([0.75, 0.25, np.nan])
    assert "different tokens: no divergence" in other_words(
        SimpleNamespace(plain=MINE), OtherNextToken(theirs, "", "", 0)
    )
    column = beside(theirs)
    assert [column.cell(SimpleNamespace(token_id=i)) for i in range(3)] == ["0.750", "0.250", "–"]
