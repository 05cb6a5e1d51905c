"""Lessons and their steps."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from explorer.lessons.course.markdown import Block
from explorer.lessons.course.quantities import Quantity
from explorer.lessons.course.questions.question import Question
from explorer.lessons.course.questions.tasks import Task

NEXT_TOKEN = "next-token"  # as a question names the panel beside the tabs


@dataclass(frozen=True)
class LessonStep:
    """A step of a lesson: a page state, text, and a question or a task.

    Attributes:
        title: in a line.
        before: the text before the question or task.
        state: fields of the page's state and their values.
        target: element id of the figure to highlight; "" for none.
        question: the question, if any.
        question_text: the question's text.
        hidden_figures: element ids of figures that would give away the answer.
        task: the task, if there is no question.
        after: the text after a reply, or after the task is done.
        values: quantities shown in `after`, by name.
        line: in the file.
    """

    title: str
    before: list[Block]
    state: Mapping[str, Any]
    target: str = ""
    question: Question | None = None
    question_text: str = ""
    hidden_figures: tuple[str, ...] = ()
    task: Task | None = None
    after: list[Block] = field(default_factory=list)
    values: Mapping[str, Quantity] = field(default_factory=dict)
    line: int = 1


@dataclass(frozen=True)
class Lesson:
    """A lesson: its metadata and its steps.

    Attributes:
        name: in the URL.
        title: its title.
        audience: its intended students.
        minutes: its duration.
        model: the model that it is written for.
        prerequisites: names of the lessons that come before.
        misconception: the misconception that it addresses.
        steps: in order.
    """

    name: str
    title: str
    audience: str
    minutes: int
    model: str
    prerequisites: tuple[str, ...]
    misconception: str
    steps: tuple[LessonStep, ...]

    def step(self, number: int) -> LessonStep:
        """Return the step with this number, from 1, or the nearest one."""
        return self.steps[min(max(number, 1), len(self.steps)) - 1]

    def state(self, number: int, model: str = "") -> dict[str, Any]:
        """Return the raw page state of a step, with the lesson's model or another."""
        return {"checkpoint": model or self.model, **self.step(number).state}
