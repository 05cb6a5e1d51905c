"""What a lesson may ask: each kind of question and the check that belongs to it."""

from collections.abc import Callable
from typing import Any

from explorer.lessons.course.blocks import Fields, Items, at, is_a, kinds
from explorer.lessons.course.questions.blanks import blanks
from explorer.lessons.course.questions.cell import largest_cell
from explorer.lessons.course.questions.choice import choice
from explorer.lessons.course.questions.curve import curve
from explorer.lessons.course.questions.judged import Question
from explorer.lessons.course.questions.number import number
from explorer.lessons.course.questions.tasks import TASKS, Task
from explorer.lessons.course.questions.token import top_token

# kind of question -> the check that it needs, the names that its `ask` block may have besides, and what makes it
KINDS: dict[str, tuple[str, dict[str, Any], Callable[[Fields, Fields | None], Question]]] = {
    "choice": ("", {"options": Items}, choice),
    "token": ("top_token", {"options": Items}, top_token),
    "cell": ("argmax_cell", {}, largest_cell),
    "number": ("number", {"from": float, "to": float}, number),
    "curve": ("curve", {"from": float, "to": float, "labels": Items}, curve),
    "blanks": ("working", {}, blanks),
}
CHECKS = (*filter(None, (check for check, _names, _make in KINDS.values())), *TASKS)


def question(ask: Fields, check: Fields | None) -> tuple[str, Question]:
    """The kind of a step's question, and the question.

    Raises:
        LessonError: the blocks make none.
    """
    with at(ask.line):
        named = [name for name in ask if name in KINDS]
        if len(named) != 1:
            raise ValueError(f"a question is of one kind: {', '.join(KINDS)}")
    (kind,) = named
    needed, names, make = KINDS[kind]
    known = {kind: str, "hides": Items, **names}
    for name, value in ask.items():
        with at(ask.lines[name]):
            if name not in known:
                raise ValueError(f"“{name}” is unknown to a {kind}; known are {', '.join(known)}")
            if not is_a(value, known[name]):
                raise ValueError(f"“{name}” must be {kinds(known[name])}, got {value!r:.60}")
    named_checks = [name for name in check or () if name != "values"]
    with at(check.line if check else ask.line):
        if needed and named_checks != [needed]:
            raise ValueError(f"a {kind} has the check “{needed}”, got {', '.join(named_checks) or 'none'}")
        if not needed and named_checks:
            raise ValueError(f"of a {kind} each option says when it is right: “{named_checks[0]}” has no place")
    return kind, make(ask, check)


def task(check: Fields) -> Task:
    """What a step without a question has the visitor do.

    Raises:
        LessonError: there is no such check.
    """
    named = [name for name in check if name != "values"]
    with at(check.line):
        if len(named) != 1 or named[0] not in TASKS:
            raise ValueError(f"without a question a step has one check of {', '.join(TASKS)}, got {', '.join(named)}")
        if not isinstance(check[named[0]], Fields):
            raise ValueError(f"“{named[0]}” is a mapping, got {check[named[0]]!r:.60}")
    return TASKS[named[0]](check[named[0]])
