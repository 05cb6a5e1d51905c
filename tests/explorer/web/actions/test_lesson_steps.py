"""Steps of lessons as page states."""

import pytest

from explorer.errors import UserError
from explorer.lessons.lesson import LessonLibrary
from explorer.web.actions.page_actions import LessonStepStates
from explorer.web.browser_api.lesson_endpoints import ELEMENT_IDS, LessonContents
from tests.subtest_loops import subtest_each

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
def step_states(tmp_path, builder) -> LessonStepStates:
    steps = (
        STEP.format(title="One", text="the fox", more=""),
        STEP.format(title="Two", text="the owl sat", more="query: 0\n"),
    )
    (tmp_path / "mine.md").write_text(LESSON + "".join(steps), encoding="utf-8")
    shelf = LessonLibrary(bundled=tmp_path, figure_ids=ELEMENT_IDS)
    return LessonStepStates(LessonContents(shelf, builder.runs, builder.state_from_query))


def test_step_is_page_state(step_states, builder):
    page_state, settings = step_states.go_to_step(
        {"checkpoint": "sinusoidal", "prompt": "1"}, {"lesson": "mine", "step": 2}
    )
    selection = page_state.selection
    assert builder.runs.text(page_state.run)[0] == "the owl sat"
    assert (selection.lesson, selection.step, selection.reply) == ("mine", 2, "")
    assert (selection.view, selection.layer, selection.query) == ("residual", 1, 0)
    assert (page_state.run.checkpoint, settings.temperature) == ("rope", 0.3)


def test_unspecified_fields_of_step_have_defaults(step_states):
    page_state, settings = step_states.go_to_step(
        {"checkpoint": "rope", "prompt": "1", "edits": "blocks.0.attn.z.0*zero", "top_p": 0.2},
        {"lesson": "mine", "step": 1},
    )
    assert page_state.run.edits == () and settings.top_p == 1
    assert page_state.selection.query == len(page_state.run.prompt) - 1


@subtest_each(("step", "there"), [(0, 1), (1, 1), (2, 2), (3, 2), ("x", 1), (None, 1)])
def test_invalid_step_is_clamped(step_states, step, there):
    page_state, _settings = step_states.go_to_step(
        {"checkpoint": "rope", "prompt": "1"}, {"lesson": "mine", "step": step}
    )
    assert page_state.selection.step == there


@pytest.mark.parametrize(("reply", "kept"), [("2:x", "2:x"), ("1:x", ""), ("22:x", ""), (7, ""), (None, "")])
def test_reply_is_kept_for_its_own_step_only(step_states, reply, kept):
    command = {"lesson": "mine", "step": 2, "reply": reply}
    page_state, _settings = step_states.go_to_step({"checkpoint": "rope", "prompt": "1"}, command)
    assert page_state.selection.reply == kept


@pytest.mark.parametrize("name", ["none", None, ["mine"], {}])
def test_unknown_lesson_is_refused(step_states, name):
    with pytest.raises(UserError, match="no lesson"):
        step_states.go_to_step({"checkpoint": "rope", "prompt": "1"}, {"lesson": name, "step": 1})


def test_url_with_step_only_is_completed_from_step(step_states):
    query = step_states.complete_query({"lesson": "mine", "step": "2"}, "rope")
    assert (query["text"], query["view"], query["query"], query["checkpoint"]) == (
        "the owl sat",
        "residual",
        "0",
        "rope",
    )


def test_other_url_fields_override_step(step_states):
    query = step_states.complete_query({"lesson": "mine", "step": "2", "layer": "0"}, "rope")
    assert (query["layer"], query["view"]) == ("0", "residual")


def test_url_with_own_run_is_unchanged(step_states):
    query = {"lesson": "mine", "step": "2", "prompt": "1.2", "view": "tokens"}
    assert step_states.complete_query(query, "rope") == query


def test_url_with_unknown_lesson_is_unchanged(step_states):
    assert step_states.complete_query({"lesson": "none", "step": "2"}, "rope") == {"lesson": "none", "step": "2"}
