"""Advice on a prompt, and the better prompt that it offers."""

from dataclasses import replace

import pytest

from explorer.tracing.library import Library
from explorer.tracing.runs import Runs
from explorer.web.answers.around_tabs import AroundTabs
from explorer.web.events.opening import Opening


@pytest.fixture(scope="module")
def opening() -> Opening:
    return Opening(Runs(Library("cpu")))


@pytest.mark.parametrize(
    ("prompt", "words", "offer"),
    [
        ("Once upon a time ", "ends in a space", "Once upon a time"),
        ("Once upon a time", "punctuation mark, “,”", "Once upon a time there"),
        ("Once upon a time there", "", ""),
        ("They lived happily ever after.", "end of the text", "They lived happily ever after. They"),
        ("Xqzt vvb grph", "hardly foresaw", ""),
    ],
)
def test_a_prompt_is_advised(opening, prompt, words, offer):
    run = opening.run_of("llama-fables", prompt)
    content = AroundTabs(opening.runs).advice(run)["advice"]
    assert words in content["words"] and bool(words) == bool(content["words"]) and content["offer"] == offer
    written = replace(run, generated=(300,))
    assert AroundTabs(opening.runs).advice(written) == {"advice": {"words": "", "offer": ""}}


def test_a_prompt_of_which_the_beginning_is_unseen_gets_no_offer(opening):
    run = opening.run_of("llama-fables", "Once upon a time " * 100)
    assert run.dropped and AroundTabs(opening.runs).advice(run)["advice"]["offer"] == ""
