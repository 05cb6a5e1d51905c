"""Short lessons for tests, and the bundled model that they use."""

import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from explorer.lessons.lesson import Lesson, parse_lesson
from explorer.lessons.quantities import QuantityContext
from explorer.tracing.model_library import ModelLibrary
from explorer.tracing.run_service import RunService
from explorer.web.actions.page_state_builder import PageStateBuilder

TEACHING = Path(__file__).parents[3] / "docs" / "teaching.md"  # documents the format of lessons
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
STATE_LINE = len(FRONT.splitlines()) + 4  # line number of "text" in the file of `lesson_text()`


def lesson_text(blocks: str = "", state: str = STATE) -> str:
    """Return the text of a lesson with one step, which begins with the state."""
    return f"{FRONT}\n## A step\n{state}{textwrap.dedent(blocks)}"


@pytest.fixture(scope="session")
def runs() -> RunService:
    return RunService(ModelLibrary("cpu"))


@pytest.fixture(scope="session")
def get_context(runs) -> Callable[..., QuantityContext]:
    """Function that returns the evaluation context of a lesson's step: `get_context(lesson, step)`."""

    def make_context(lesson: Lesson, step: int = 1, **change) -> QuantityContext:
        return QuantityContext(runs, PageStateBuilder(runs).state_from_query, {**lesson.state(step), **change})

    return make_context


@pytest.fixture(scope="session")
def plain_context(get_context) -> QuantityContext:
    """Evaluation context of a lesson without questions."""
    return get_context(parse_lesson("a", lesson_text()))
