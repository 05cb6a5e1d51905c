"""Printable sheets of the bundled lessons."""

import json

import pytest

from explorer.errors import UserError
from explorer.lessons.lesson import LessonLibrary
from explorer.tracing.model_library import ModelLibrary
from explorer.tracing.run_service import RunService
from explorer.web.actions.page_state_builder import PageStateBuilder
from explorer.web.browser_api.lesson_endpoints import ELEMENT_IDS, LessonContents, LessonEndpoints
from tests.subtest_loops import subtest_each

STATE = {"checkpoint": "llama-fables", "prompt": "1.2"}
NAMES = sorted(LessonLibrary().lessons)


@pytest.fixture(scope="module")
def endpoints() -> LessonEndpoints:
    builder = PageStateBuilder(RunService(ModelLibrary("cpu")))
    return LessonEndpoints(
        builder.runs, LessonContents(LessonLibrary(None, ELEMENT_IDS), builder.runs, builder.state_from_query)
    )


@subtest_each("name", [pytest.param(name, marks=() if name == "order" else pytest.mark.exhaustive) for name in NAMES])
def test_every_step_can_be_printed_with_its_answer(endpoints, name):
    lesson = endpoints.lessons.lesson_library.lessons[name]
    for step_number, step in enumerate(lesson.steps, 1):
        sheet = endpoints.lesson_sheet(STATE, name, step_number)
        json.dumps(sheet, allow_nan=False)
        assert (sheet["heading"], sheet["step"], sheet["text"]) == (step.title, step_number, step.state["text"])
        assert "hides" not in sheet
        if step.question and not sheet["question"].get("is_example"):
            assert sheet["judged"]["truth"] and sheet["judged"]["reply"] is None
        if step.target in step.hidden_figures:
            assert sheet["is_hidden"]
        if step.target and sheet["figure"]:
            assert step.target.startswith(step.state["view"]) and sheet["figure"]["content"]


def test_sheet_uses_available_model_and_has_task_of_own_text(endpoints):
    first = endpoints.lesson_sheet(STATE, "norms", 3)
    assert first["model"] == "llama-fables" and "missing" not in first
    task = endpoints.lesson_sheet(STATE, "choosing-the-next-word", 10)
    assert "problem" not in task and not task["task"]["is_done"]


@subtest_each(("name", "place"), [("gone", 1), ("order", 0), ("order", 99)])
def test_invalid_step_is_refused(endpoints, name, place):
    with pytest.raises(UserError, match="no lesson"):
        endpoints.lesson_sheet(STATE, name, place)
