"""Advice on prompts, from constructed predictions with a known problem."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from explorer.analysis.next_token import surprisal
from explorer.lessons.example_prompts import PromptAdvice, end_token_advice_template, prompt_advice
from explorer.tracing.trace import Trace
from tests.subtest_loops import each_style, subtest_each


@pytest.fixture
def get_advice(capture_trace, tiny_tokenizer) -> Callable[..., PromptAdvice | None]:
    """Function that returns the advice on a prompt: `get_advice("the owl", {".": 5.0, " and": 4.0})`.

    The model predicts every token of the prompt with certainty (logit `sure`); `after` has logits of next tokens.
    """

    def advise(prompt: str, after: dict[str, float], sure: float = 20.0, joined: bool = True) -> PromptAdvice | None:
        ids = tuple(tiny_tokenizer.encode(prompt))
        logits = np.zeros((len(ids), tiny_tokenizer.vocab_size), np.float32)
        logits[np.arange(len(ids) - 1), ids[1:]] = sure
        for text, logit in after.items():
            logits[-1, tiny_tokenizer.vocabulary.index(text)] = logit
        trace: Trace = capture_trace("rope")
        texts = tiny_tokenizer.vocabulary if joined else [text.strip(" ") or text for text in tiny_tokenizer.vocabulary]
        return prompt_advice(replace(trace, token_ids=ids, vocabulary=texts, values={**trace.values, "logits": logits}))

    return advise


def test_likely_next_word_needs_no_advice(get_advice):
    assert get_advice("Once upon a time", {" the": 9.0, ".": 8.0}) is None


@pytest.mark.parametrize(
    ("text", "said"),
    [(".", "punctuation"), (",", "punctuation"), ("\n", "line break"), ("<|endoftext|>", "end of the text")],
)
def test_likely_end_is_reported_with_likeliest_word(get_advice, text, said):
    advice = get_advice("Once upon a time", {text: 9.0, "?": 8.5, " moon": 8.0, " the": 7.0})
    assert said in advice.text and "“·moon” (17%)" in advice.text and "probability 47%" in advice.text
    assert advice.follow("Once upon a time") == "Once upon a time moon"


def test_unlikely_word_is_not_offered(get_advice):
    advice = get_advice("Once upon a time", {".": 20.0, " the": 7.0})
    assert "punctuation" in advice.text and advice.follow("x") == "x"


@subtest_each("text", [" “", " (", "—a", "\\xe2", "’s", "7", ""])
def test_opening_token_is_not_an_end(rope_trace, text):
    assert end_token_advice_template(replace(rope_trace, vocabulary=(text,)), 0) == ""


def test_trailing_space_is_reported(get_advice):
    advice = get_advice("the owl ", {".": 9.0})
    assert "ends in a space" in advice.text
    assert advice.follow("the owl ") == "the owl"


def test_trailing_space_is_accepted_without_joined_spaces(get_advice):
    assert get_advice("the owl ", {"moon": 9.0}, joined=False) is None


def test_trailing_space_advice_counts_joined_tokens(get_advice, tiny_tokenizer):
    words = get_advice("the owl ", {".": 9.0}).text
    joined = [text for text in tiny_tokenizer.vocabulary if text.startswith(" ") and text[1:2].isalnum()]
    assert f" {len(joined)} of this model’s {tiny_tokenizer.vocab_size} tokens" in words
    assert "learned" not in words  # no statistics of the training text exist


@each_style
def test_unexpected_prompt_is_reported(trace, get_advice):
    assert surprisal(trace)[1:].mean() > 0.75 * np.log2(trace.config.vocab_size)
    assert "did not expect" in prompt_advice(trace).text  # a random model expects nothing
    assert "did not expect" in get_advice("Once upon a time there", {" the": 9.0}, sure=0.0).text


@each_style
@subtest_each("length", [1, 12, 32])
def test_advice_is_none_or_sentence(capture_trace, style, length):
    advice = prompt_advice(capture_trace(style, length))
    assert advice is None or advice.text.endswith(".")
