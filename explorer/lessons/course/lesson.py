"""What a lesson is."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from explorer.lessons.course.quantities import Quantity
from explorer.lessons.course.questions.judged import Question
from explorer.lessons.course.questions.tasks import Task
from explorer.lessons.course.words import Block

NEXT_TOKEN = "next-token"  # as a question names the panel beside the tabs


@dataclass(frozen=True)
class Step:
    """A step of a lesson.

    Attributes:
        title: in a line.
        before: what is told first.
        state: names of the page's address and what they are.
        target: the picture that is pointed out, by its element's id; "" for none.
        question: what is asked.
        asks: the question in words.
        hides: pictures that would tell the answer.
        task: what is to be done, where nothing is asked.
        after: what is told once there is a reply, or the task is done.
        values: numbers that `after` tells.
        line: in the file.
    """

    title: str
    before: list[Block]
    state: Mapping[str, Any]
    target: str = ""
    question: Question | None = None
    asks: str = ""
    hides: tuple[str, ...] = ()
    task: Task | None = None
    after: list[Block] = field(default_factory=list)
    values: Mapping[str, Quantity] = field(default_factory=dict)
    line: int = 1


@dataclass(frozen=True)
class Lesson:
    """A lesson.

    Attributes:
        name: in the address.
        title: what it is called.
        audience: for whom it is.
        minutes: that it takes.
        model: that it is written for.
        needs: names of lessons that come before.
        against: the misconception that it is against.
        steps: in their order.
    """

    name: str
    title: str
    audience: str
    minutes: int
    model: str
    needs: tuple[str, ...]
    against: str
    steps: tuple[Step, ...]

    def step(self, number: int) -> Step:
        """By its number, from 1; the nearest where there is none."""
        return self.steps[min(max(number, 1), len(self.steps)) - 1]

    def state(self, number: int, model: str = "") -> dict[str, Any]:
        """What the page is asked in a step, read by its model or by another."""
        return {"checkpoint": model or self.model, **self.step(number).state}
