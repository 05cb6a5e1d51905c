"""Advice on prompts: made predictions, of which it is known what stands in the way."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from explorer.analysis.next_token import surprisal
from explorer.lessons.advice import Advice, advice, ending
from explorer.tracing.trace import Trace


@pytest.fixture
def told(trace_of, tiny_tokenizer) -> Callable[..., Advice | None]:
    """`told("the owl", {".": 5.0, " and": 4.0})` is the advice on a prompt that the model knows by heart, after which
    the logits of tokens are these."""

    def told(prompt: str, after: dict[str, float], sure: float = 20.0, joined: bool = True) -> Advice | None:
        ids = tuple(tiny_tokenizer.encode(prompt))
        logits = np.zeros((len(ids), tiny_tokenizer.vocab_size), np.float32)
        logits[np.arange(len(ids) - 1), ids[1:]] = sure
        for text, logit in after.items():
            logits[-1, tiny_tokenizer.vocabulary.index(text)] = logit
        trace: Trace = trace_of("rope")
        texts = tiny_tokenizer.vocabulary if joined else [text.strip(" ") or text for text in tiny_tokenizer.vocabulary]
        return advice(replace(trace, token_ids=ids, vocabulary=texts, values={**trace.values, "logits": logits}))

    return told


def test_a_word_to_come_needs_no_advice(told):
    assert told("Once upon a time", {" the": 9.0, ".": 8.0}) is None


@pytest.mark.parametrize(
    ("text", "said"),
    [(".", "punctuation"), (",", "punctuation"), ("\n", "line break"), ("<|endoftext|>", "end of the text")],
)
def test_an_end_is_told_and_the_likeliest_word_offered(told, text, said):
    found = told("Once upon a time", {text: 9.0, "?": 8.5, " moon": 8.0, " the": 7.0})
    assert said in found.words and "“·moon”" in found.words
    assert found.follow("Once upon a time") == "Once upon a time moon"


def test_a_word_that_is_hardly_likely_is_not_offered(told):
    found = told("Once upon a time", {".": 20.0, " the": 7.0})
    assert "punctuation" in found.words and found.follow("x") == "x"


@pytest.mark.parametrize("text", [" “", " (", "—a", "\\xe2", "’s", "7", ""])
def test_what_begins_or_goes_on_is_no_end(rope_trace, text):
    assert ending(replace(rope_trace, vocabulary=(text,)), 0) == ""


def test_a_space_at_the_end_is_to_be_left_out(told):
    found = told("the owl ", {".": 9.0})
    assert "ends in a space" in found.words
    assert found.follow("the owl ") == "the owl"


def test_a_space_at_the_end_is_fine_where_no_token_has_one_joined(told):
    assert told("the owl ", {"moon": 9.0}, joined=False) is None


def test_a_space_is_told_with_what_was_measured(told, tiny_tokenizer):
    words = told("the owl ", {".": 9.0}).words
    joined = [text for text in tiny_tokenizer.vocabulary if text.startswith(" ") and text[1:2].isalnum()]
    assert f" {len(joined)} of this model’s {tiny_tokenizer.vocab_size} tokens" in words
    assert "learned" not in words  # nothing was measured of the training text


def test_a_prompt_the_model_does_not_expect_is_told(trace, told):
    assert surprisal(trace)[1:].mean() > 0.75 * np.log2(trace.config.vocab_size)
    assert "hardly foresaw" in advice(trace).words  # of a random model, which expects nothing
    assert "hardly foresaw" in told("Once upon a time there", {" the": 9.0}, sure=0.0).words


@pytest.mark.parametrize("length", [1, 12, 32])
def test_every_prompt_gets_a_sentence_or_none(trace_of, style, length):
    found = advice(trace_of(style, length))
    assert found is None or found.words.endswith(".")
