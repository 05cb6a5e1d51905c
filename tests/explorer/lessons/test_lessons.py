"""The bundled lessons, checked with the models that they use."""

import re

import pytest

from explorer.lessons.lesson import BUNDLED, ORDER, LessonLibrary, parse_lesson
from explorer.lessons.questions import ChoiceQuestion, FillInBlanksQuestion, NumberQuestion
from explorer.web.browser_api.lesson_endpoints import ELEMENT_IDS
from tests.exhaustive import every_nth_in_core
from tests.subtest_loops import subtest_each

from .conftest import TEACHING

LESSONS = LessonLibrary(figure_ids=ELEMENT_IDS).lessons
STEPS = [
    pytest.param(lesson, i, id=f"{name}-{i}")
    for name, lesson in LESSONS.items()
    for i in range(1, len(lesson.steps) + 1)
]


@subtest_each(("lesson", "number"), every_nth_in_core(3, STEPS))
def test_step_has_one_correct_answer(get_context, lesson, number):
    step, context = lesson.step(number), get_context(lesson, number)
    assert all(
        quantity.evaluate(context) == quantity.evaluate(context) for quantity in step.values.values()
    )  # none is NaN
    if step.question:
        question = step.question
        judged = question.grade(context, None)
        assert judged.truth
        if isinstance(question, ChoiceQuestion):
            assert len(judged.truth["right"]) == 1, judged.truth
        if isinstance(question, NumberQuestion):
            assert question.lowest < judged.truth["truth"] < question.highest
        if isinstance(question, FillInBlanksQuestion):
            assert question.prompt_payload(context)["rows"]
    if step.task:
        assert not step.task.check(context, context).is_done


@subtest_each(("lesson", "number"), STEPS)
@pytest.mark.exhaustive
def test_step_state_is_valid(get_context, lesson, number):
    step, context = lesson.step(number), get_context(lesson, number)
    assert step.state["view"] and step.title
    assert 0 <= context.selection.query < len(context.trace)
    assert all(
        context.state[name] == context.selection.as_dict()[name]
        for name in ("layer", "head", "query")
        if name in step.state
    )


@subtest_each("lesson", LESSONS.values(), ids=LESSONS)
def test_lesson_is_short_and_asks_questions(lesson):
    assert 3 <= len(lesson.steps) <= 12
    assert sum(bool(step.question or step.task) for step in lesson.steps) >= 3
    assert all(step.before or step.question_text for step in lesson.steps)
    assert set(lesson.prerequisites) <= LESSONS.keys()


@subtest_each("lesson", LESSONS.values(), ids=LESSONS)
def test_prose_contains_no_measured_numbers(lesson):
    """Measured numbers are computed from the run; the prose has only whole numbers and settings."""
    text = (BUNDLED / f"{lesson.name}.md").read_text(encoding="utf-8")
    prose = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    allowed = {"0.4", "0.5", "0.9", "0.95", "0.6"}
    assert set(re.findall(r"\d+\.\d+", prose)) <= allowed


def test_questions_hide_figures_with_answer():
    """Every question hides figures, except two: one is read from a figure, one the page does not answer."""
    asking = {
        (name, number)
        for name, lesson in LESSONS.items()
        for number, step in enumerate(lesson.steps, 1)
        if step.question and not step.hidden_figures and getattr(step.question, "blanks", "") != "none"
    }
    assert asking == {("vectors-and-meaning", 4), ("feed-forward", 2)}


def test_outlined_cells_of_attention_are_where_the_last_token_looks_most(get_context):
    """The texts of the first two steps say so; the second tells the cell's share."""
    lesson = LESSONS["who-looks-at-whom"]
    for step in (1, 2):
        context = get_context(lesson, step)
        selection = context.selection
        row = context.trace[f"blocks.{selection.layer}.attn.pattern"][selection.head, selection.query]
        assert (selection.query, selection.key) == (len(context.trace) - 1, row.argmax())
    assert "before" in lesson.step(2).values


def test_numbers_shown_in_workings_follow_from_numbers_shown(get_context):
    """In all lessons each computed number is, to its last digit, what its calculation gives with those above."""
    rows_of = {
        (name, number): step.question._rows(get_context(lesson, number))
        for name, lesson in LESSONS.items()
        for number, step in enumerate(lesson.steps, 1)
        if hasattr(step.question, "worked_example")
    }
    wrong = []
    for step, rows in rows_of.items():
        numbers = [float(row.display.replace("−", "-").replace(",", "")) for row in rows]
        for i, row in enumerate(rows):
            digits = len(re.sub(r"e.*|\D", "", row.display).lstrip("0")) or 1
            if row.compute and f"{row.compute(numbers[:i]):.{digits - 1}e}" != f"{numbers[i]:.{digits - 1}e}":
                wrong.append((step, row.text, row.display, row.compute(numbers[:i])))
    assert len(rows_of) > 6 and not wrong


def test_ordered_lessons_exist():
    assert list(LESSONS) == [name for name in ORDER if name in LESSONS]
    assert len(LESSONS) >= 6


def test_teaching_guide_lists_all_lessons():
    guide = TEACHING.read_text(encoding="utf-8")
    rows = [f"| [{x.title}](../explorer/lessons/{name}.md) | {x.minutes} |" for name, x in LESSONS.items()]
    assert [row for row in rows if row not in guide] == []


def test_example_lesson_in_guide_works(get_context):
    page = TEACHING.read_text(encoding="utf-8")
    (whole,) = re.findall(r"````markdown\n(.*?)````", page, re.DOTALL)
    lesson = parse_lesson("whole", whole, ELEMENT_IDS)
    assert lesson.steps[1].question.grade(get_context(lesson, 2), "1").is_right
    context = get_context(lesson, 3)
    assert not lesson.steps[2].task.check(context, context).is_done
    assert lesson.steps[2].task.check(context, context.replace({"layer": 2, "head": 0})).is_done
