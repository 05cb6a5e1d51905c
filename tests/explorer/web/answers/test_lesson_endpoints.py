"""A lesson on paper, from the bundled lessons."""

import json

import pytest

from explorer.lessons.course.shelf import Shelf
from explorer.state.errors import UserError
from explorer.tracing.library import Library
from explorer.tracing.runs import Runs
from explorer.web.answers.lesson_answers import PICTURES, LessonAnswers
from explorer.web.answers.lesson_endpoints import LessonEndpoints
from explorer.web.events.opening import Opening

STATE = {"checkpoint": "llama-fables", "prompt": "1.2"}
NAMES = sorted(Shelf().lessons)


@pytest.fixture(scope="module")
def endpoints() -> LessonEndpoints:
    opening = Opening(Runs(Library("cpu")))
    return LessonEndpoints(opening.runs, LessonAnswers(Shelf(None, PICTURES), opening.runs, opening.restored))


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name == "order" else pytest.mark.exhaustive) for name in NAMES]
)
def test_every_step_of_a_lesson_can_be_printed_with_its_answer(endpoints, name):
    lesson = endpoints.lessons.shelf.lessons[name]
    for place, step in enumerate(lesson.steps, 1):
        sheet = endpoints.lesson_sheet(STATE, name, place)
        json.dumps(sheet, allow_nan=False)
        assert (sheet["heading"], sheet["step"], sheet["text"]) == (step.title, place, step.state["text"])
        assert "hides" not in sheet
        if step.question and not sheet["question"].get("is_example"):
            assert sheet["judged"]["truth"] and sheet["judged"]["reply"] is None
        if step.target in step.hides:
            assert sheet["is_hidden"]
        if step.target and sheet["figure"]:
            assert step.target.startswith(step.state["view"]) and sheet["figure"]["picture"]


def test_its_numbers_are_those_of_the_model_that_is_here(endpoints):
    first = endpoints.lesson_sheet(STATE, "norms", 3)
    assert first["model"] == "llama-fables" and "missing" not in first


@pytest.mark.parametrize(
    ("name", "place"), [("gone", 1), (None, 1), (["order"], 1), ("order", 0), ("order", 99), ("order", "1")]
)
def test_what_is_no_step_of_a_lesson_is_refused(endpoints, name, place):
    with pytest.raises(UserError, match="no lesson"):
        endpoints.lesson_sheet(STATE, name, place)
