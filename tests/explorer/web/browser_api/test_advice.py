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
def builder() -> PageStateBuilder:
    return PageStateBuilder(RunService(ModelLibrary("cpu")))


@pytest.mark.parametrize(
    ("prompt", "words", "offer"),
    [
        ("Once upon a time ", "ends in a space", "Once upon a time"),
        ("Once upon a time", "punctuation mark, “,”", "Once upon a time there"),
        ("Once upon a time there", "", ""),
        ("They lived happily ever after.", "end of the text", "They lived happily ever after. They"),
        ("Xqzt vvb grph", "did not expect", ""),
    ],
)
def test_prompt_gets_advice(builder, prompt, words, offer):
    run = builder.create_run("llama-fables", prompt)
    content = PageContents(builder.runs).advice(PageState(run, Selection()))["advice"]
    assert words in content["words"] and bool(words) == bool(content["words"]) and content["offer"] == offer
    continued_run = replace(run, generated=(300,))
    assert PageContents(builder.runs).advice(PageState(continued_run, Selection())) == {
        "advice": {"words": "", "offer": ""}
    }


def test_truncated_prompt_gets_no_offer(builder):
    run = builder.create_run("llama-fables", "Once upon a time " * 100)
    assert run.dropped and PageContents(builder.runs).advice(PageState(run, Selection()))["advice"]["offer"] == ""
