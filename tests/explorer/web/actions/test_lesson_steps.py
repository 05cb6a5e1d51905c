"""Steps of lessons as page states."""

import pytest

from explorer.errors import UserError
from explorer.lessons.lesson import LessonLibrary
from explorer.web.actions.page_actions import LessonStepStates
from explorer.web.browser_api.lesson_endpoints import ELEMENT_IDS, LessonContents

LESSON = """---
title: T
for: x
minutes: 1
model: rope
against: b
---
"""
STEP = "\n## {title}\n\n```state\ntext: {text}\nview: residual\nlayer: 1\ntemperature: 0.3\n{more}```\n"


@pytest.fixture
def events(tmp_path, opening) -> LessonStepStates:
    steps = (
        STEP.format(title="One", text="the fox", more=""),
        STEP.format(title="Two", text="the owl sat", more="query: 0\n"),
    )
    (tmp_path / "mine.md").write_text(LESSON + "".join(steps), encoding="utf-8")
    shelf = LessonLibrary(bundled=tmp_path, figure_ids=ELEMENT_IDS)
    return LessonStepStates(LessonContents(shelf, opening.runs, opening.state_from_query))


def test_a_step_is_a_state(events, opening):
    page_state, settings = events.go_to_step({"checkpoint": "sinusoidal", "prompt": "1"}, {"lesson": "mine", "step": 2})
    selection = page_state.selection
    assert opening.runs.text(page_state.run)[0] == "the owl sat"
    assert (selection.lesson, selection.step, selection.reply) == ("mine", 2, "")
    assert (selection.view, selection.layer, selection.query) == ("residual", 1, 0)
    assert (page_state.run.checkpoint, settings.temperature) == ("rope", 0.3)


def test_what_a_step_leaves_open_is_as_the_page_begins(events):
    page_state, settings = events.go_to_step(
        {"checkpoint": "rope", "prompt": "1", "edits": "blocks.0.attn.z.0*zero", "top_p": 0.2},
        {"lesson": "mine", "step": 1},
    )
    assert page_state.run.edits == () and settings.top_p == 1
    assert page_state.selection.query == len(page_state.run.prompt) - 1


@pytest.mark.parametrize(("step", "there"), [(0, 1), (1, 1), (2, 2), (3, 2), ("x", 1), (None, 1)])
def test_there_is_always_a_nearest_step(events, step, there):
    page_state, _settings = events.go_to_step({"checkpoint": "rope", "prompt": "1"}, {"lesson": "mine", "step": step})
    assert page_state.selection.step == there


@pytest.mark.parametrize(("reply", "kept"), [("2:x", "2:x"), ("1:x", ""), ("22:x", ""), (7, ""), (None, "")])
def test_a_reply_goes_along_to_its_own_step_alone(events, reply, kept):
    command = {"lesson": "mine", "step": 2, "reply": reply}
    page_state, _settings = events.go_to_step({"checkpoint": "rope", "prompt": "1"}, command)
    assert page_state.selection.reply == kept


@pytest.mark.parametrize("name", ["none", None, ["mine"], {}])
def test_a_lesson_that_is_not_there_is_told(events, name):
    with pytest.raises(UserError, match="no lesson"):
        events.go_to_step({"checkpoint": "rope", "prompt": "1"}, {"lesson": name, "step": 1})


def test_an_address_with_a_step_alone_asks_what_the_step_does(events):
    query = events.complete_query({"lesson": "mine", "step": "2"}, "rope")
    assert (query["text"], query["view"], query["query"], query["checkpoint"]) == (
        "the owl sat",
        "residual",
        "0",
        "rope",
    )


def test_what_an_address_says_besides_goes_before_the_step(events):
    query = events.complete_query({"lesson": "mine", "step": "2", "layer": "0"}, "rope")
    assert (query["layer"], query["view"]) == ("0", "residual")


def test_an_address_with_a_run_of_its_own_is_left_as_it_is(events):
    query = {"lesson": "mine", "step": "2", "prompt": "1.2", "view": "tokens"}
    assert events.complete_query(query, "rope") == query


def test_an_address_with_another_lesson_is_left_as_it_is(events):
    assert events.complete_query({"lesson": "none", "step": "2"}, "rope") == {"lesson": "none", "step": "2"}
