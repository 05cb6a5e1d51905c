"""Each lesson that comes with the page is true of the model that it is about."""

import re

import pytest

from explorer.lessons.course.questions.blanks import Blanks
from explorer.lessons.course.questions.choice import Choice
from explorer.lessons.course.questions.number import Number
from explorer.lessons.course.reading import lesson_of
from explorer.lessons.course.shelf import BUNDLED, ORDER, Shelf
from explorer.web.answers.lesson_answers import PICTURES
from tests.exhaustive import one_of

LESSONS = Shelf(pictures=PICTURES).lessons
STEPS = [
    pytest.param(lesson, i, id=f"{name}-{i}")
    for name, lesson in LESSONS.items()
    for i in range(1, len(lesson.steps) + 1)
]


@pytest.mark.parametrize(("lesson", "number"), one_of(3, STEPS))
def test_a_step_can_be_asked_and_has_one_truth(look_at, lesson, number):
    step, look = lesson.step(number), look_at(lesson, number)
    assert all(quantity.at(look) == quantity.at(look) for quantity in step.values.values())  # none is NaN
    if step.question:
        question = step.question
        judged = question.judged(look, None)
        assert judged.truth
        if isinstance(question, Choice):
            assert len(judged.truth["right"]) == 1, judged.truth
        if isinstance(question, Number):
            assert question.lowest < judged.truth["truth"] < question.highest
        if isinstance(question, Blanks):
            assert question.asked(look)["rows"]
    if step.task:
        assert not step.task.done(look, look).is_done


@pytest.mark.parametrize(("lesson", "number"), STEPS)
@pytest.mark.exhaustive
def test_what_a_step_points_out_is_there(look_at, lesson, number):
    step, look = lesson.step(number), look_at(lesson, number)
    assert step.state["view"] and step.title
    assert 0 <= look.selection.query < len(look.trace)
    assert all(
        look.state[name] == getattr(look.selection, name) for name in ("layer", "head", "query") if name in step.state
    )


@pytest.mark.parametrize("lesson", LESSONS.values(), ids=LESSONS)
def test_a_lesson_is_short_asks_and_ends_each_question_with_words(lesson):
    assert 3 <= len(lesson.steps) <= 12
    assert sum(bool(step.question or step.task) for step in lesson.steps) >= 3
    assert all(step.before or step.asks for step in lesson.steps)
    assert set(lesson.needs) <= LESSONS.keys()


@pytest.mark.parametrize("lesson", LESSONS.values(), ids=LESSONS)
def test_no_lesson_tells_a_number_of_a_run_by_itself(lesson):
    """What the run has is worked out: in words there are whole numbers and settings, and no measured one."""
    text = (BUNDLED / f"{lesson.name}.md").read_text(encoding="utf-8")
    told = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    allowed = {"0.4", "0.5", "0.9", "0.95", "0.6"}
    assert set(re.findall(r"\d+\.\d+", told)) <= allowed


def test_what_asks_hides_what_tells():
    """All questions do, but for examples and those listed, whose answer nothing on the page says."""
    asking = {
        (name, number)
        for name, lesson in LESSONS.items()
        for number, step in enumerate(lesson.steps, 1)
        if step.question and not step.hides and getattr(step.question, "blanks", "") != "none"
    }
    assert asking == {("tokens-and-merges", 5), ("vectors-and-meaning", 4), ("feed-forward", 2)}


def test_all_that_are_ordered_are_there():
    assert list(LESSONS) == [name for name in ORDER if name in LESSONS]
    assert len(LESSONS) >= 6


def test_the_lesson_of_the_formats_page_is_true(look_at):
    page = (BUNDLED / "README.md").read_text(encoding="utf-8")
    (whole,) = re.findall(r"````markdown\n(.*?)````", page, re.DOTALL)
    lesson = lesson_of("whole", whole, PICTURES)
    assert lesson.steps[1].question.judged(look_at(lesson, 2), "1").is_right
    found = look_at(lesson, 3)
    assert not lesson.steps[2].task.done(found, found).is_done
    assert lesson.steps[2].task.done(found, found.but({"layer": 2, "head": 0})).is_done
