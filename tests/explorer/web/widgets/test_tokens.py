"""The token strip, the tree of continuations, and the feedback on the user's guess."""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

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
)
from explorer.web.widgets.view_tools import PromptAdviceLine
from tests.explorer.web.script_calls import call_script
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


def pack_guess(prediction: NextTokenDistribution, vocabulary: Sequence[str], *args: Any, **options: Any) -> dict:
    """Return the widget's value after the token " the", as JSON."""
    value = NextTokenGuessForm.pack(prediction, vocabulary, " the", *args, **options)
    assert json.loads(json.dumps(value, allow_nan=False)) == value
    return value


def describe_values(*values: dict) -> list[str]:
    """Return the sentences that the browser makes of each value."""
    calls = ((value, value["guess"] is not None) for value in values)
    return call_script("static/text.js", "describeGuess", *calls)


def test_guess_choices_are_whole_words_in_alphabetical_order():
    """The likeliest and two others; parts of words serve where others lack."""
    choices = call_script(
        "static/text.js",
        "guessChoices",
        (["ing", " He", " sh", "er", " stone", " rock", " ground", ".", ",", "!"],),
        ([" zebra", " yak", " Xerus", " wolf", " vole"],),
        (["ing", " a", "ed", "."],),
        (["."] * 10,),
    )
    assert choices == [["ground", "He", "rock"], ["vole", "Xerus", "zebra"], ["a", "ed", "ing"], []]


@each_style
def test_likeliest_tokens_are_candidates(trace, style):
    prediction = make_prediction(style)
    best = np.argsort(-prediction.plain, kind="stable")[:10]
    assert pack_guess(prediction, trace.vocabulary)["candidates"] == [trace.vocabulary[i] for i in best]


@each_style
@subtest_each("changed", [{}, {"top_k": 3}, {"temperature": 0.0}])
def test_most_probable_token_has_its_probability(trace, changed):
    settings = replace(SETTINGS, **changed)
    logits = trace.logits.row(5).astype(np.float64)
    top_logits = np.sort(logits)[::-1][: settings.top_k]
    share = 1 if settings.temperature == 0 else 1 / np.exp((top_logits - top_logits[0]) / settings.temperature).sum()
    prediction = next_token_distribution(trace, 5, settings.temperature, settings.top_k, seed=0)
    likeliest = pack_guess(prediction, trace.vocabulary)["likeliest"]
    assert likeliest == {"token": trace.vocabulary[logits.argmax()], "sampled": pytest.approx(share, rel=1e-5)}


@each_style
def test_generated_token_is_described_by_unfiltered_probability(trace, style):
    prediction = make_prediction(style)
    token_id = int(trace.logits.row(5).argsort()[-3])
    written = (" fox", replace(prediction, actual=token_id))
    values = [
        pack_guess(prediction, trace.vocabulary, written=written, is_changed=is_changed) for is_changed in (False, True)
    ]
    token, chance = quote_word(trace.vocabulary[token_id]), format_percent(float(prediction.plain[token_id]))
    assert describe_values(*values) == [
        f"The model’s own chance for {token} after “fox” was {chance}: number 3 on its list.",
        f"The changed model’s own chance for {token} after “fox” is {chance}: number 3 on its list.",
    ]


@each_style
def test_guessed_token_has_probability_and_rank(trace, style):
    prediction = make_prediction(style)
    likeliest = max(
        (i for i in range(len(trace.vocabulary)) if trace.vocabulary[i].strip().isalpha()),
        key=lambda i: prediction.sampled[i],
    )
    guess = pack_guess(prediction, trace.vocabulary, f"{trace.vocabulary[likeliest].strip().swapcase()} ")["guess"]
    assert (guess["token"], guess["is_exact"]) == (trace.vocabulary[likeliest], True)
    assert (guess["sampled"], guess["rank"]) == (prediction.sampled[likeliest], prediction.rank(likeliest))


@each_style
def test_guess_cut_by_settings_has_rank_before_them(trace):
    prediction = next_token_distribution(trace, 5, 0.5, 1, seed=0)
    guess = pack_guess(prediction, trace.vocabulary, "the")["guess"]
    token_id = trace.vocabulary.index(guess["token"])
    assert guess["token"].strip() == "the" and guess["sampled"] == 0 and guess["rank"] == prediction.rank(token_id)


@each_style
@subtest_each("guess", ["<b>{0}</b>", "🦊🦊", "\u0000", "TheZorblat"])
def test_any_text_is_a_guess(trace, style, guess):
    value = pack_guess(make_prediction(style), trace.vocabulary, guess)["guess"]
    assert value["text"] == guess.strip()
    assert guess != "TheZorblat" or value["token"].strip() == "the"  # the first token of a longer word


def test_guess_is_described_beside_the_likeliest_token():
    """A guess is right, elsewhere on the list, cut, longer than a token, or nothing that a token begins."""
    likelier = "The likeliest now is “owl” (31%)."
    exact, longer = ({"text": "MOON", "token": " moon", "is_exact": is_exact} for is_exact in (True, False))
    cut = exact | {"sampled": 0, "rank": 7}
    beginning = "“MOON” is more than one token. It could begin with “moon”"
    texts = {
        "Right: “moon” is the likeliest now, with 31%.": exact | {"sampled": 0.314, "rank": 1},
        f"{likelier} Your “moon” is number 1,234 on its list (5.0%).": exact | {"sampled": 0.05, "rank": 1234},
        f"{likelier} Your “moon” is number 7 on its list: the settings leave it out.": cut,
        f"{beginning}: number 1 on its list (31%).": longer | {"sampled": 0.314, "rank": 1},
        f"{likelier} {beginning}: number 3 on its list (5.0%).": longer | {"sampled": 0.05, "rank": 3},
        f"{likelier} {beginning}, which the settings leave out.": longer | {"sampled": 0, "rank": 3},
        f"{likelier} The model has no token that your guess “🦊” could begin with.": {"text": "🦊", "token": None},
        "After “the” the likeliest next token is “owl”: 31% with these settings.": None,
    }
    value = {"after": " the", "likeliest": {"token": " owl", "sampled": 0.314}, "written": None}
    assert describe_values(*(value | {"guess": guess} for guess in texts.values())) == list(texts)
