"""Lessons written in a line or two, and the bundled model that they are about."""

import textwrap
from collections.abc import Callable

import pytest

from explorer.lessons.course.lesson import Lesson
from explorer.lessons.course.look import Look
from explorer.lessons.course.reading import lesson_of
from explorer.tracing.library import Library
from explorer.tracing.runs import Runs
from explorer.web.events.opening import Opening

FRONT = """---
title: A lesson
for: testers
minutes: 1
model: llama-fables
against: nothing
---
"""
STATE = """```state
text: The cat saw the dog. The dog saw
view: attention
layer: 0
head: 0
query: 8
key: 7
```
"""
STATE_LINE = len(FRONT.splitlines()) + 4  # of "text" in the file that `written` gives


def written(blocks: str = "", state: str = STATE) -> str:
    """A lesson's file with one step, which begins with its state."""
    return f"{FRONT}\n## A step\n{state}{textwrap.dedent(blocks)}"


@pytest.fixture(scope="session")
def runs() -> Runs:
    return Runs(Library("cpu"))


@pytest.fixture(scope="session")
def look_at(runs) -> Callable[..., Look]:
    """`look_at(lesson, step)` is what a step asks about."""

    def look_at(lesson: Lesson, step: int = 1, **change) -> Look:
        return Look(runs, Opening(runs).restored, {**lesson.state(step), **change})

    return look_at


@pytest.fixture(scope="session")
def plain(look_at) -> Look:
    """The state of `written`."""
    return look_at(lesson_of("a", written()))
