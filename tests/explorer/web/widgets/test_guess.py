"""The model's guesses, and how likely it found the visitor's."""

import json

import pytest

from explorer.analysis.next_token import next_token
from explorer.explain.notation import quoted
from explorer.web.widgets.guess import SHOWN, Guess, told


@pytest.fixture
def prediction(trace):
    return next_token(trace, 5, seed=0)


def test_the_likeliest_are_shown_with_the_models_own_probability(trace, prediction):
    value = json.loads(json.dumps(Guess.pack(prediction, trace.vocabulary, trace.tokens[5], "")))
    shares = [row["share"] for row in value["tokens"]]
    assert shares == pytest.approx(sorted(prediction.plain, reverse=True)[:SHOWN])
    assert [row["token"] for row in value["tokens"]] == [trace.vocabulary[i] for i in prediction.top(SHOWN)]
    assert value["told"] == "" and value["is_last"] is False
    assert value["drawn"]["token"] == quoted(trace.vocabulary[prediction.drawn])


def test_a_word_that_is_a_token_has_its_probability_and_its_place(trace, prediction):
    words = told(prediction, trace.vocabulary, "THE ")
    same = [i for i, text in enumerate(trace.vocabulary) if text.strip().lower() == "the"]
    best = max(same, key=lambda i: prediction.plain[i])
    assert f"place {prediction.rank(best):,} of {len(trace.vocabulary)}" in words


def test_of_another_word_the_longest_beginning_is_told(trace, prediction):
    words = told(prediction, trace.vocabulary, "thezzz")
    assert "no single token" in words and "“·the”" in words or "“the”" in words


@pytest.mark.parametrize("guess", ["<b>{0}</b>", "🦊🦊", "   ", "\u0000"])
def test_any_text_is_a_guess(trace, prediction, guess):
    assert isinstance(told(prediction, trace.vocabulary, guess), str)
