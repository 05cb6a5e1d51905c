"""The text and the column about a second run's next token."""

from types import SimpleNamespace

import numpy as np

from explorer.web.widgets.next_token.table import (
    OtherRunPrediction,
    other_run_column,
    other_run_summary,
)

PROBABILITIES_A, PROBABILITIES_B = np.array([0.5, 0.25, 0.25]), np.array([0.75, 0.125, 0.125])


def test_divergences_are_told_each_way():
    """Computed by hand: ½ log₂ ⅔ + ½ log₂ 2 bits from A to B, ¾ log₂ 1½ − ¼ log₂ 2 bits from B to A."""
    text = other_run_summary(
        SimpleNamespace(plain=PROBABILITIES_A), OtherRunPrediction(PROBABILITIES_B, " owl", " the", 7)
    )
    assert "after “·the” (position 7), the same random number falls on “·owl”" in text
    assert "KL(A‖B) = 0.208 bits, KL(B‖A) = 0.189 bits" in text


def test_a_token_that_b_has_not_is_said_to_be_missing():
    probabilities = np.array([0.75, 0.25, np.nan])
    assert "different tokens: no divergence" in other_run_summary(
        SimpleNamespace(plain=PROBABILITIES_A), OtherRunPrediction(probabilities, "", "", 0)
    )
    column = other_run_column(probabilities)
    assert [column.cell(SimpleNamespace(token_id=i)) for i in range(3)] == ["0.750", "0.250", "–"]
