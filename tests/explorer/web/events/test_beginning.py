"""What a model expects before every text: there from the first, and left out by whoever wants to see what follows."""

import pytest

from explorer.web.answers.around_tabs import AroundTabs
from explorer.web.api import Api
from explorer.web.protocol import STRIP
from tests.specimens import STORIES


@pytest.fixture(scope="module")
def stories(page) -> str:
    """A model that expects <s>, id 1."""
    return page.library.offered.open(STORIES)


@pytest.fixture
def begun(page, stories, state, merged) -> dict:
    return merged(state, [page.events.on_prompt("Once upon a time", stories, state)])


@pytest.fixture
def strip(page, state):
    """What the token strip of a state has to say of it."""

    def strip(now: dict) -> list:
        asked = page.writing.opening.within(page.writing.next_turn(now))
        trace = page.writing.opening.runs.trace(asked.run)
        return AroundTabs(page.writing.opening.runs).tokens(asked, trace)[STRIP]["beginning"]

    return strip


def test_a_text_begins_as_its_model_expects_and_reads_as_it_was_typed(page, begun, stories, strip):
    text = page.library.model(stories)[1].encode("Once upon a time")
    assert begun["prompt"] == [1, *text]
    assert page.events.opening.runs.text(page.writing.next_turn(begun).run) == ("Once upon a time", "")
    assert strip(begun) == ["<s>", True]


def test_it_is_left_out_and_put_back_with_what_was_written(page, begun, merged, strip):
    written = merged(begun, page.writing.on_step(begun))
    without = merged(written, [page.writing.on_move(written | {"move": {"kind": "beginning"}})])
    assert without["prompt"] == begun["prompt"][1:] and without["generated"] == written["generated"]
    assert without["query"] == len(without["prompt"]) and strip(without) == ["<s>", False]
    again = merged(without, [page.writing.on_move(without | {"move": {"kind": "beginning"}})])
    assert again["prompt"] == begun["prompt"] and strip(again) == ["<s>", True]


def test_another_prompt_begins_as_the_one_before(page, begun, stories, merged):
    without = merged(begun, [page.writing.on_move(begun | {"move": {"kind": "beginning"}})])
    for before, beginning in ((begun, [1]), (without, [])):
        now = merged(before, [page.events.on_prompt("A dog", stories, before)])
        assert now["prompt"] == [*beginning, *page.library.model(stories)[1].encode("A dog")]
        move = {"kind": "compare", "with": "prompt", "text": "A cat"}
        beside = merged(before, [page.writing.on_move(before | {"move": move})])
        ids = [*beginning, *page.library.model(stories)[1].encode("A cat")]
        assert beside["b.prompt"] == ids


def test_another_model_reads_the_text_as_it_expects(page, begun, stories, merged):
    own = page.library.model("rope")[1].encode("Once upon a time")
    there = merged(begun, [page.events.on_model("Once upon a time", "rope", begun | {"own": None})])
    assert there["prompt"] == own
    back = merged(there, [page.events.on_model("Once upon a time", stories, there | {"own": None})])
    assert back["prompt"] == begun["prompt"]


def test_a_model_that_expects_nothing_has_nothing_to_leave_out(page, state, told, strip):
    assert strip(state) == ["", True]
    page.writing.on_move(state | {"move": {"kind": "beginning"}})
    assert told == ["This model expects nothing before a text."]


def test_programs_get_the_text_without_it(page, stories):
    api = Api(page.events.opening, stories)
    answer = api.generate("Once upon a time", max_new_tokens=5, temperature=0)
    assert answer["text"].startswith(", there was")
