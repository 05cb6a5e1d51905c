"""Kinds of questions in lessons, and parsers of their blocks."""

from collections.abc import Callable
from typing import Any

from explorer.lessons.course.questions.blanks_question import parse_blanks_question
from explorer.lessons.course.questions.choice_question import parse_choice_question
from explorer.lessons.course.questions.curve_question import parse_curve_question
from explorer.lessons.course.questions.largest_cell_question import parse_largest_cell_question
from explorer.lessons.course.questions.number_question import parse_number_question
from explorer.lessons.course.questions.question import Question
from explorer.lessons.course.questions.tasks import TASKS, Task
from explorer.lessons.course.questions.token_question import parse_token_question
from explorer.lessons.course.yaml_blocks import (
    ListWithLines,
    MappingWithLines,
    errors_as_lesson_errors,
    format_kinds,
    has_kind,
)

# kind of question -> the check that it needs, the names that its `ask` block may have besides, and what makes it
KINDS: dict[str, tuple[str, dict[str, Any], Callable[[MappingWithLines, MappingWithLines | None], Question]]] = {
    "choice": ("", {"options": ListWithLines}, parse_choice_question),
    "token": ("top_token", {"options": ListWithLines}, parse_token_question),
    "cell": ("argmax_cell", {}, parse_largest_cell_question),
    "number": ("number", {"from": float, "to": float}, parse_number_question),
    "curve": ("curve", {"from": float, "to": float, "labels": ListWithLines}, parse_curve_question),
    "blanks": ("working", {}, parse_blanks_question),
}
CHECKS = (*filter(None, (check for check, _names, _make in KINDS.values())), *TASKS)


def parse_question(ask: MappingWithLines, check: MappingWithLines | None) -> tuple[str, Question]:
    """Parse the blocks of a step's question, and return its kind and the question.

    Raises:
        LessonError: the blocks define none.
    """
    with errors_as_lesson_errors(ask.line):
        named = [name for name in ask if name in KINDS]
        if len(named) != 1:
            raise ValueError(f"a question is of one kind: {', '.join(KINDS)}")
    (kind,) = named
    required_check, names, make = KINDS[kind]
    kinds = {kind: str, "hides": ListWithLines, **names}
    for name, value in ask.items():
        with errors_as_lesson_errors(ask.lines[name]):
            if name not in kinds:
                raise ValueError(f"“{name}” is unknown to a {kind}; known are {', '.join(kinds)}")
            if not has_kind(value, kinds[name]):
                raise ValueError(f"“{name}” must be {format_kinds(kinds[name])}, got {value!r:.60}")
    named_checks = [name for name in check or () if name != "values"]
    with errors_as_lesson_errors(check.line if check else ask.line):
        if required_check and named_checks != [required_check]:
            raise ValueError(f"a {kind} has the check “{required_check}”, got {', '.join(named_checks) or 'none'}")
        if not required_check and named_checks:
            raise ValueError(f"of a {kind} each option says when it is right: “{named_checks[0]}” has no place")
    return kind, make(ask, check)


def parse_task(check: MappingWithLines) -> Task:
    """Parse the task of a step without a question.

    Raises:
        LessonError: there is no such check.
    """
    named = [name for name in check if name != "values"]
    with errors_as_lesson_errors(check.line):
        if len(named) != 1 or named[0] not in TASKS:
            raise ValueError(f"without a question a step has one check of {', '.join(TASKS)}, got {', '.join(named)}")
        if not isinstance(check[named[0]], MappingWithLines):
            raise ValueError(f"“{named[0]}” is a mapping, got {check[named[0]]!r:.60}")
    return TASKS[named[0]](check[named[0]])
