"""The token strip, the tree of continuations, and the feedback on the user's guess."""

import json
from dataclasses import replace

import numpy as np
import pytest

from explorer.analysis.next_token import SHADES, NextTokenDistribution, next_token_distribution, shade_tokens
from explorer.explain.notation import format_percent, quote_word
from explorer.state.generation_settings import GenerationSettings
from explorer.state.page_state import Branch, build_tree
from explorer.web.widgets.tokens import (
    ContinuationTree,
    GenerationPlayer,
    NextTokenGuessForm,
    TokenStrip,
    describe_generated_token,
    describe_guess,
    guess_choices,
)
from explorer.web.widgets.view_tools import PromptAdviceLine
from tests.sample_models import capture_style
from tests.subtest_loops import each_style, subtest_each


def test_packed_strip_is_json():
    shades = {"rank": (np.array([0, 0.12345]), ["", "rank 3"])}
    packed = TokenStrip.pack(("<b>", "\n"), shades, num_prompt=1, earlier=7)
    assert packed == {
        "tokens": ["<b>", "\n"],
        "shades": {"rank": {"shares": [0, 0.123], "words": ["", "rank 3"]}},
        "num_prompt": 1,
        "earlier": 7,
        "beginning": ["", False],
    }
    assert json.loads(json.dumps(packed, allow_nan=False)) == packed


@each_style
def test_every_token_has_every_shading(trace):
    packed = TokenStrip.pack(trace.tokens, {name: shade_tokens(trace, name) for name in SHADES}, len(trace), 0)
    assert packed["tokens"] == list(trace.tokens)
    for shade in packed["shades"].values():
        assert len(shade["shares"]) == len(shade["words"]) == len(trace)


def test_every_shading_can_be_selected():
    markup = TokenStrip().markup
    assert all(f'<option value="{name}">' in markup for name in SHADES)


SURPRISALS = {(1, 2, 3): [1.0, 2.0, 3.0], (1, 4): [1.0, 0.5]}


@pytest.fixture
def rows() -> list[dict]:
    return ContinuationTree.pack(
        build_tree(SURPRISALS), (1, 4), (Branch((1, 2, 3), "beam"),), lambda token_id: f"<{token_id}>"
    )


def test_each_tree_row_has_tokens_and_numbers(rows):
    assert [(row["ids"], row["tokens"], row["parent"], row["depth"]) for row in rows] == [
        ([1], ["<1>"], -1, 0),
        ([4], ["<4>"], 0, 1),
        ([2, 3], ["<2>", "<3>"], 0, 1),
    ]
    assert [(row["probability"], row["first"], row["bits"], row["total"]) for row in rows] == [
        (0.5, "0.500", "−1.00", "−1.00"),
        (2**-0.5, "0.707", "−0.500", "−1.50"),
        (0.25, "0.250", "−5.00", "−6.00"),
    ]
    assert [(row["length"], row["per_token"], row["perplexity"]) for row in rows[1:]] == [
        (2, "−0.750", "1.68"),
        (3, "−2.00", "4.00"),
    ]
    assert json.loads(json.dumps(rows, allow_nan=False)) == rows


def test_tree_rows_show_visibility_and_origin(rows):
    assert [row["shown"] for row in rows] == [True, True, False]
    assert [row["here"] for row in rows] == [False, True, False]
    assert [row["compared"] for row in rows] == [False, True, True]
    assert [row["origins"] for row in rows] == ["", "", "beam"]


def test_branch_of_two_methods_names_both():
    branches = (Branch((1,), "greedy"), Branch((1,), "sampling"))
    (row,) = ContinuationTree.pack(build_tree({(1,): [1.0]}), (), branches, str)
    assert row["origins"] == "greedy, sampling" and not row["shown"]


@pytest.mark.parametrize(
    ("tokens", "num_prompt", "generated", "packed"),
    [
        ("abcde", 3, 2, {"first": 2, "tokens": ["c", "d", "e"], "unseen": 0}),
        ("abc", 3, 0, {"first": 2, "tokens": ["c"], "unseen": 0}),
        ("abc", 1, 2, {"first": 0, "tokens": ["a", "b", "c"], "unseen": 0}),
        ("abcd", 0, 9, {"first": 0, "tokens": ["a", "b", "c", "d"], "unseen": 6}),  # what precedes "a" is not visible
    ],
)
def test_playback_starts_after_prompt_or_at_first_visible_token(tokens, num_prompt, generated, packed):
    assert GenerationPlayer.pack(tuple(tokens), num_prompt, generated) == packed
    assert packed["unseen"] + len(packed["tokens"]) - 1 == generated


def test_advice_has_text_and_offer():
    assert PromptAdviceLine.pack("<b>", "x") == {"words": "<b>", "offer": "x"}
    assert PromptAdviceLine.pack() == {"words": "", "offer": ""}


SETTINGS = GenerationSettings(temperature=0.5, top_k=40)


def make_prediction(style: str) -> NextTokenDistribution:
    return next_token_distribution(capture_style(style), 5, SETTINGS.temperature, SETTINGS.top_k, seed=0)


def pack_guess(trace, settings: GenerationSettings, **options) -> dict:
    prediction = next_token_distribution(trace, 5, settings.temperature, settings.top_k, seed=0)
    return json.loads(json.dumps(NextTokenGuessForm.pack(prediction, trace.vocabulary, trace.tokens[5], **options)))


@each_style
def test_guess_choices_include_best_word_in_alphabetical_order(style):
    prediction = make_prediction(style)
    letters = "zyxwvutsrqponmlkjihgfedcba"
    vocabulary = [f" {letters[i // 26 % 26]}{letters[i % 26]}" for i in range(len(prediction.plain))]
    words = [vocabulary[i].strip() for i in np.argsort(-prediction.plain, kind="stable")[:12]]
    choices = guess_choices(prediction, vocabulary)
    assert words[0] in choices and set(choices) <= set(words)
    assert len(choices) == 3 and choices == sorted(choices)


@each_style
def test_guess_choices_are_whole_words(style):
    prediction = make_prediction(style)
    vocabulary = ["."] * len(prediction.plain)
    for token_id, text in zip(
        prediction.top(7), ["ing", " He", " sh", "er", " stone", " rock", " ground"], strict=True
    ):
        vocabulary[token_id] = text
    assert guess_choices(prediction, vocabulary) == ["ground", "He", "rock"]


@each_style
def test_too_few_words_give_no_choices(style):
    prediction = make_prediction(style)
    assert guess_choices(prediction, ["."] * len(prediction.plain)) == []


@each_style
@subtest_each("changed", [{}, {"top_k": 3}, {"temperature": 0.0}])
def test_sentence_names_most_probable_token(trace, changed):
    settings = replace(SETTINGS, **changed)
    logits = trace.logits.row(5).astype(np.float64)
    top_logits = np.sort(logits)[::-1][: settings.top_k]
    share = 1 if settings.temperature == 0 else 1 / np.exp((top_logits - top_logits[0]) / settings.temperature).sum()
    token = quote_word(trace.vocabulary[int(logits.argmax())])
    assert (
        f"likeliest next token is {token}: {format_percent(float(share))} with these settings."
        in pack_guess(trace, settings)["says"]
    )


@each_style
def test_generated_token_is_described_by_unfiltered_probability(trace, style):
    prediction = make_prediction(style)
    token_id = int(trace.logits.row(5).argsort()[-3])
    text = describe_generated_token(" the", replace(prediction, actual=token_id), trace.vocabulary)
    token, chance = quote_word(trace.vocabulary[token_id]), format_percent(float(prediction.plain[token_id]))
    assert text == f"The model’s own chance for {token} after “the” was {chance}: number 3 on its list."
    changed = describe_generated_token(" the", replace(prediction, actual=token_id), trace.vocabulary, is_changed=True)
    assert changed == f"The changed model’s own chance for {token} after “the” is {chance}: number 3 on its list."


@each_style
def test_guessed_token_has_probability_and_rank(trace, style):
    prediction = make_prediction(style)
    likeliest = max(
        (i for i in range(len(trace.vocabulary)) if trace.vocabulary[i].strip().isalpha()),
        key=lambda i: prediction.sampled[i],
    )
    typed = trace.vocabulary[likeliest].strip().swapcase()
    words, share = describe_guess(prediction, trace.vocabulary, f"{typed} "), float(prediction.sampled[likeliest])
    rank, first = prediction.rank(likeliest), int(prediction.sampled.argmax())
    assert quote_word(trace.vocabulary[likeliest]) in words and format_percent(share) in words
    if rank > 1:
        chance = format_percent(float(prediction.sampled[first]))
        better = f"{quote_word(trace.vocabulary[first])} ({chance})"
        assert words.startswith(f"The likeliest now is {better}.") and f"number {rank} on its list" in words


@each_style
def test_guess_of_most_probable_word_is_right(trace):
    prediction = next_token_distribution(trace, 5, 0.5, 40, seed=0)
    first = int(prediction.sampled.argmax())
    vocabulary = [f" w{i}" for i in range(len(prediction.plain))]
    share = format_percent(float(prediction.sampled[first]))
    words = describe_guess(prediction, vocabulary, f"W{first}")
    assert words == f"Right: “w{first}” is the likeliest now, with {share}."


@each_style
def test_guess_cut_by_settings_has_rank_only(trace):
    words = describe_guess(next_token_distribution(trace, 5, 0.5, 1, seed=0), trace.vocabulary, "the")
    verdict = words.partition(". ")[2]
    assert "the settings leave it out" in verdict and "number" in verdict and "%" not in verdict


@each_style
def test_longer_word_is_explained_by_its_first_token(trace, style):
    prediction = make_prediction(style)
    words = describe_guess(prediction, trace.vocabulary, "TheZorblat")
    first = quote_word(trace.vocabulary[int(prediction.sampled.argmax())])
    likelier, told = (
        f"The likeliest now is {first} (",
        "“TheZorblat” is more than one token. It could begin with",
    )
    assert f"{told} “the”" in words and "no single" not in words
    assert words.startswith(told if first == "“the”" else likelier)


@each_style
@subtest_each("guess", ["<b>{0}</b>", "🦊🦊", "\u0000"])
def test_any_text_is_a_guess(trace, style, guess):
    prediction = make_prediction(style)
    assert isinstance(describe_guess(prediction, trace.vocabulary, guess), str)
