"""The lessons of the page without a server, as data: those steps that it can show and judge, and their questions.

Whether a reply is right is computed there, as here, from the run (`web/without_server/questions.js`).
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict
from typing import Any

from explorer.errors import UserError
from explorer.interventions import Scale, ZeroAblation, parse_interventions
from explorer.lessons.lesson import Lesson, LessonLibrary, LessonStep
from explorer.web.browser_api.lesson_endpoints import hidden_elements, sets_sampling

SCALED_TAPS = ("attn.z", "ffn.hidden")  # of the interventions that the page has


def pack_lessons(library: LessonLibrary, views: Collection[str], missing: Collection[str]) -> list[dict[str, Any]]:
    """Return all lessons in the current language.

    Args:
        views: that the page draws.
        missing: element ids of figures that it does not draw.
    """
    return [pack_lesson(lesson, views, missing) for lesson in library.lessons.values()]


def pack_lesson(lesson: Lesson, views: Collection[str], missing: Collection[str]) -> dict[str, Any]:
    """Return a lesson's fields and its steps, or the number of its steps alone if most of them need Python."""
    steps = [pack_step(step, views, missing) for step in lesson.steps]
    is_offered = 2 * sum(step["is_here"] for step in steps) > len(steps)
    listed = {name: value for name, value in asdict(lesson).items() if name not in ("steps", "prerequisites")}
    return listed | {"length": len(steps), "steps": steps if is_offered else []}


def pack_step(step: LessonStep, views: Collection[str], missing: Collection[str]) -> dict[str, Any]:
    """Return a step's fields, the class of its question or task, and whether the page has all that it needs."""
    fields = asdict(step)
    is_drawn = step.state["view"] in views and step.target not in missing
    packed = {name: fields[name] for name in ("title", "before", "target", "state", "question_text", "after", "values")}
    question = step.question or step.task
    return packed | {
        "is_here": is_drawn and all(map(is_scaling, iterate_texts(fields))),
        "is_task": step.task is not None,
        "kind": type(question).__name__ if question else None,
        "question": fields["question"] or fields["task"],
        "hides": hidden_elements(step),
        "sets_sampling": sets_sampling(step),
    }


def iterate_texts(fields: Any) -> Iterator[str]:
    """Yield all texts in a tree of mappings and sequences."""
    if isinstance(fields, str):
        yield fields
    elif isinstance(fields, Mapping):
        yield from iterate_texts(list(fields.values()))
    elif isinstance(fields, list | tuple):
        for field in fields:
            yield from iterate_texts(field)


def is_scaling(text: str) -> bool:
    """Return whether a text is no intervention, or scales heads or neurons, which the page can."""
    try:
        interventions = parse_interventions(text)
    except (UserError, ValueError):
        return True
    return all(
        isinstance(intervention, Scale | ZeroAblation) and intervention.tap.endswith(SCALED_TAPS)
        for intervention in interventions
    )
