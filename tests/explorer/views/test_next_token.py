import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from explorer.analysis.next_token import NextToken, next_token
from explorer.style import label, number
from explorer.views.next_token import BARS, distribution, summary

VOCABULARY = tuple(f" w{i}" for i in range(50))


@pytest.fixture
def falling():
    """A distribution over 50 tokens, each less likely than the one before; all are kept but the last 45."""

    def falling(actual: int | None = None, kept: int = 5) -> NextToken:
        plain = 0.9 ** np.arange(50)
        sampled = np.where(np.arange(50) < kept, plain, 0)
        return NextToken(plain / plain.sum(), sampled / sampled.sum(), actual)

    return falling


def shown(figure):
    """What is drawn: the bars, the mark of the token that comes next, and the ticks of the model alone."""
    bars, marked = (trace for trace in figure.data if trace.type == "bar")
    ticks = next(trace for trace in figure.data if trace.type == "scatter" and trace.mode == "markers")
    return bars, marked, ticks


def test_bars_are_the_probabilities_drawn_with_and_ticks_those_of_the_model_alone(falling):
    prediction = falling()
    bars, marked, ticks = shown(distribution(prediction, VOCABULARY, " w7"))
    assert_array_equal(bars.x, prediction.sampled[:BARS])
    assert_array_equal(ticks.x, prediction.plain[:BARS])
    assert_array_equal(bars.y, ticks.y)
    assert len(marked.x) == 0


def test_likeliest_tokens_stand_above_with_their_ranks(falling):
    figure = distribution(falling(), VOCABULARY, " w7")
    assert list(figure.layout.yaxis.ticktext) == [f"{i + 1}. {label(f' w{i}')}" for i in range(BARS)]
    assert figure.layout.yaxis.autorange == "reversed"


def test_the_token_that_comes_next_is_marked(falling):
    bars, marked, _ = shown(distribution(falling(actual=3), VOCABULARY, " w7"))
    assert_array_equal(marked.y, [3])
    assert_allclose(marked.x, [bars.x[3]])


def test_it_is_shown_wherever_it_ranks(falling):
    figure = distribution(falling(actual=41), VOCABULARY, " w7")
    bars, marked, ticks = shown(figure)
    assert figure.layout.yaxis.ticktext[-1] == f"42. {label(' w41')}"
    assert len(bars.x) == BARS
    assert_array_equal(marked.y, [BARS - 1])
    assert ticks.x[-1] == falling().plain[41]


def test_a_token_that_cannot_be_drawn_says_so(falling):
    figure = distribution(falling(kept=2), VOCABULARY, " w7")
    numbers = next(trace.text for trace in figure.data if trace.type == "scatter" and trace.mode == "text")
    assert list(numbers[2:]) == ["cut"] * (BARS - 2)
    assert "cut" not in numbers[:2]


def test_everything_drawn_is_within_the_axis(falling):
    figure = distribution(falling(actual=0), VOCABULARY, " w7")
    low, high = figure.layout.xaxis.range
    for trace in figure.data:
        assert all(low <= x <= high for x in trace.x)


def test_a_vocabulary_smaller_than_the_bars(tiny_config):
    prediction = NextToken(np.array([0.7, 0.3]), np.array([1.0, 0.0]), actual=1)
    bars, marked, _ = shown(distribution(prediction, ("a", "b"), "a"))
    assert (list(bars.x), list(marked.y)) == ([1, 0], [1])


def test_the_text_alternative_names_the_likeliest(falling):
    prediction = falling()
    alt = distribution(prediction, VOCABULARY, "\n").layout.meta["alt"]
    assert alt == f"Next token after “↵”: most likely “·w0”, {number(prediction.sampled[0])}."


def test_the_summary_has_the_numbers(falling):
    prediction = falling(actual=41)
    text = summary(prediction, VOCABULARY, " w7", 6)
    assert text.startswith("After “·w7” (position 6): 5 of 50 tokens can be drawn")
    assert f"entropy {number(prediction.entropy)} bits" in text
    assert f"“·w41”, rank 42, probability {number(prediction.plain[41])}" in text
    assert "goes on" not in summary(falling(), VOCABULARY, " w7", 6)


def test_of_a_captured_run(trace):
    prediction = next_token(trace, 4, temperature=0.7, top_k=8)
    bars, _, _ = shown(distribution(prediction, trace.vocabulary, trace.tokens[4]))
    assert np.sum(bars.x) <= 1 + 1e-9
    assert bars.x[0] == prediction.sampled.max()
