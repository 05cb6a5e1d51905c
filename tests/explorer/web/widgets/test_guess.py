"""The probabilities of the next token, and the verdict on the user's guess."""

import json
from dataclasses import replace

import numpy as np
import pytest

from explorer.analysis.next_token import next_token_distribution
from explorer.explain.notation import quote_token
from explorer.state.generation_settings import GenerationSettings
from explorer.views.plots import format_percent
from explorer.web.widgets.tokens import NextTokenGuess, choose_words, describe_guess, describe_sampled_token

SETTINGS = GenerationSettings(temperature=0.5, top_k=40)


@pytest.fixture
def prediction(trace):
    return next_token_distribution(trace, 5, SETTINGS.temperature, SETTINGS.top_k, seed=0)


def pack_guess(trace, settings: GenerationSettings, **options) -> dict:
    prediction = next_token_distribution(trace, 5, settings.temperature, settings.top_k, seed=0)
    return json.loads(
        json.dumps(NextTokenGuess.pack(prediction, trace.vocabulary, settings, trace.tokens[5], **options))
    )


def test_the_choices_hold_the_likeliest_word_and_their_order_does_not_tell_it(prediction):
    letters = "zyxwvutsrqponmlkjihgfedcba"
    vocabulary = [f" {letters[i // 26 % 26]}{letters[i % 26]}" for i in range(len(prediction.plain))]
    words = [vocabulary[i].strip() for i in np.argsort(-prediction.plain, kind="stable")[:12]]
    choices = choose_words(prediction, vocabulary)
    assert words[0] in choices and set(choices) <= set(words)
    assert len(choices) == 3 and choices == sorted(choices)


def test_without_enough_words_there_are_no_choices(prediction):
    assert choose_words(prediction, ["."] * len(prediction.plain)) == []


@pytest.mark.parametrize("changed", [{}, {"top_k": 3}, {"temperature": 0.0}])
def test_the_sentence_says_the_token_that_is_drawn_most_often(trace, changed):
    settings = replace(SETTINGS, **changed)
    logits = trace.logits.row(5).astype(np.float64)
    top_logits = np.sort(logits)[::-1][: settings.top_k]
    share = 1 if settings.temperature == 0 else 1 / np.exp((top_logits - top_logits[0]) / settings.temperature).sum()
    token = quote_token(trace.vocabulary[int(logits.argmax())])
    assert f"likeliest next token is {token}: {format_percent(float(share))}." in pack_guess(trace, settings)["says"]


def test_a_draw_is_told_where_these_settings_draw_the_token_of_the_text(trace, prediction):
    token_id = prediction.sampled_token_id
    text = describe_sampled_token(replace(prediction, actual=token_id), trace.vocabulary, SETTINGS)
    chance = format_percent(float(prediction.sampled[token_id]))
    assert text == f"A random number fell on {quote_token(trace.vocabulary[token_id])}; its chance was {chance}."
    assert describe_sampled_token(replace(prediction, actual=token_id + 1), trace.vocabulary, SETTINGS) == ""


def test_a_word_that_is_a_token_has_its_chance_and_its_place(trace, prediction):
    likeliest = max(
        (i for i in range(len(trace.vocabulary)) if trace.vocabulary[i].strip().isalpha()),
        key=lambda i: prediction.sampled[i],
    )
    typed = trace.vocabulary[likeliest].strip().swapcase()
    words = describe_guess(prediction, trace.vocabulary, f"{typed} ")
    assert quote_token(typed) in words and quote_token(trace.vocabulary[likeliest]) in words  # as it was typed
    assert f"{format_percent(float(prediction.sampled[likeliest]))}, place {prediction.rank(likeliest)} of" in words


def test_a_word_that_is_never_drawn_has_its_place_alone(trace):
    words = describe_guess(next_token_distribution(trace, 5, 0.5, 1, seed=0), trace.vocabulary, "the")
    assert "too unlikely" in words and "place" in words and "%" not in words


def test_of_a_longer_word_the_longest_beginning_is_told_without_blame(trace, prediction):
    words = describe_guess(prediction, trace.vocabulary, "TheZorblat")
    assert "“TheZorblat” could begin with" in words and ("“·the”" in words or "“the”" in words)
    assert "no single" not in words


@pytest.mark.parametrize("guess", ["<b>{0}</b>", "🦊🦊", "\u0000"])
def test_any_text_is_a_guess(trace, prediction, guess):
    assert isinstance(describe_guess(prediction, trace.vocabulary, guess), str)
