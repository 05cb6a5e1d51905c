import numpy as np
import pytest

from explorer.analysis.next_token import NextTokenDistribution
from explorer.explain.notation import format_number
from explorer.web.widgets.next_token.table import random_draw_text, summarise_distribution
from model.generation.sampling import sampling_distribution

VOCABULARY = tuple(f" w{i}" for i in range(50))


@pytest.fixture
def falling():
    """Function that returns a prediction over 50 tokens of falling probability, of which the first 5 are kept."""

    def make_prediction(actual: int | None = None) -> NextTokenDistribution:
        logits = -0.1 * np.arange(50)
        return NextTokenDistribution(sampling_distribution(logits), sampling_distribution(logits, top_k=5), actual)

    return make_prediction


def test_the_summary_has_the_numbers(falling):
    prediction = falling(actual=41)
    text = summarise_distribution(prediction, VOCABULARY, " w7", 6)
    assert text.startswith("After “·w7” (position 6): 5 of 50 tokens can be drawn")
    assert f"entropy {format_number(prediction.entropy)} bits after temperature and filters" in text
    assert f"the model’s own is {format_number(-(prediction.plain * np.log2(prediction.plain)).sum())}." in text
    assert f"“·w41”, rank 42, the model’s probability {format_number(prediction.plain[41])}" in text
    assert "goes on" not in summarise_distribution(falling(), VOCABULARY, " w7", 6)


@pytest.mark.parametrize(
    ("actual", "end"),
    [
        (None, ". Step would draw that."),
        (3, " and would draw what the text has."),
        (7, " and would draw that; the text has “·w7”."),
    ],
)
def test_luck_is_told_with_what_it_falls_on(actual, end):
    text = random_draw_text(VOCABULARY, seed=5, u=0.43712, sampled_id=3, actual=actual)
    assert text == f"With seed 5 the random number here is u = 0.437: it falls on “·w3”{end}"
