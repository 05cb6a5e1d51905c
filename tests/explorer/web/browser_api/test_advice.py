"""Advice on a prompt, and the improved prompt that it offers."""

from dataclasses import replace

import pytest

from explorer.state.page_state import PageState
from explorer.state.selection import Selection
from explorer.tracing.model_library import ModelLibrary
from explorer.tracing.run_service import RunService
from explorer.web.actions.page_state_builder import PageStateBuilder
from explorer.web.browser_api.page_contents import PageContents


@pytest.fixture(scope="module")
def opening() -> PageStateBuilder:
    return PageStateBuilder(RunService(ModelLibrary("cpu")))


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
    run = opening.create_run("llama-fables", prompt)
    content = PageContents(opening.runs).advice(PageState(run, Selection()))["advice"]
    assert words in content["words"] and bool(words) == bool(content["words"]) and content["offer"] == offer
    continued_run = replace(run, generated=(300,))
    assert PageContents(opening.runs).advice(PageState(continued_run, Selection())) == {
        "advice": {"words": "", "offer": ""}
    }


def test_a_prompt_of_which_the_beginning_is_unseen_gets_no_offer(opening):
    run = opening.create_run("llama-fables", "Once upon a time " * 100)
    assert run.dropped and PageContents(opening.runs).advice(PageState(run, Selection()))["advice"]["offer"] == ""
