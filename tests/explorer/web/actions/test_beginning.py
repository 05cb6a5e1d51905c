"""The beginning-of-sequence token that a model expects: added to every prompt, and removable by the user."""

import pytest

from explorer.web.browser_api.page_contents import PageContents
from explorer.web.public_api import PublicApi
from explorer.web.shared_constants import STRIP
from tests.sample_models import STORIES


@pytest.fixture(scope="module")
def stories(page) -> str:
    """Name of a model that expects the token <s>, id 1."""
    return page.library.catalog.open(STORIES)


@pytest.fixture
def begun_state(stories, state, move) -> dict:
    return move(state, "prompt", text="Once upon a time", checkpoint=stories)


@pytest.fixture
def strip(page):
    """Function that returns the beginning token in a state's token strip, and whether the text starts with it."""

    def strip_beginning(now: dict) -> list:
        page_state = page.actions.state_builder.clamp_selection(page.actions.state_builder.next_revision(now))
        trace = page.actions.state_builder.runs.trace(page_state.run)
        return PageContents(page.actions.state_builder.runs).tokens(page_state, trace)[STRIP]["beginning"]

    return strip_beginning


def test_a_text_begins_as_its_model_expects_and_reads_as_it_was_typed(page, begun_state, stories, strip):
    text = page.library.model(stories)[1].encode("Once upon a time")
    assert begun_state["prompt"] == [1, *text]
    assert page.actions.state_builder.runs.text(page.actions.state_builder.next_revision(begun_state).run) == (
        "Once upon a time",
        "",
    )
    assert strip(begun_state) == ["<s>", True]


def test_it_is_left_out_and_put_back_with_what_was_written(begun_state, strip, move):
    continued = move(begun_state, "step")
    without = move(continued, "beginning")
    assert without["prompt"] == begun_state["prompt"][1:] and without["generated"] == continued["generated"]
    assert without["query"] == len(without["prompt"]) and strip(without) == ["<s>", False]
    again = move(without, "beginning")
    assert again["prompt"] == begun_state["prompt"] and strip(again) == ["<s>", True]


def test_another_prompt_begins_as_the_one_before(page, begun_state, stories, move):
    without = move(begun_state, "beginning")
    for before, beginning in ((begun_state, [1]), (without, [])):
        now = move(before, "prompt", text="A dog", checkpoint=stories)
        assert now["prompt"] == [*beginning, *page.library.model(stories)[1].encode("A dog")]
        with_second_run = move(before, "compare", text="A cat", **{"with": "prompt"})
        ids = [*beginning, *page.library.model(stories)[1].encode("A cat")]
        assert with_second_run["b.prompt"] == ids


def test_another_model_reads_the_text_as_it_expects(page, begun_state, stories, move):
    expected_ids = page.library.model("rope")[1].encode("Once upon a time")
    switched = move(begun_state, "model", text="Once upon a time", checkpoint="rope", own=None)
    assert switched["prompt"] == expected_ids
    back = move(switched, "model", text="Once upon a time", checkpoint=stories, own=None)
    assert back["prompt"] == begun_state["prompt"]


def test_a_model_that_expects_nothing_has_nothing_to_leave_out(state, notices, strip, act):
    assert strip(state) == ["", True]
    act(state, "beginning")
    assert notices == ["This model has no beginning-of-text (BOS) token."]


def test_programs_get_the_text_without_it(page, stories):
    api = PublicApi(page.actions.state_builder, stories)
    answer = api.generate("Once upon a time", max_new_tokens=5, temperature=0)
    assert answer["text"].startswith(", there was")
