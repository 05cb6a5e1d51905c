"""Each lesson is gone through to its end: asked before it is told, nothing told before, and left where one likes."""

import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from explorer.lessons.course.lesson import Step
from explorer.lessons.course.shelf import Shelf

ROOT = Path(__file__).parents[2]
LESSONS = Shelf().lessons
PHONE = {"width": 390, "height": 844}
WALKED = "who-looks-at-whom"  # in the core suite
HTML = """---
title: A <b>lesson</b>
for: testers
minutes: 1
model: no-such-model
against: <img src=x onerror=alert(1)>
---

## A <i>step</i>

<script>alert(1)</script> {{1+1}} ${1+1}

```state
text: The cat saw the dog.
view: attention
```
"""


@pytest.fixture(scope="module")
def own(tmp_path_factory) -> Path:
    """A teacher's folder."""
    folder = tmp_path_factory.mktemp("own")
    (folder / "of-a-teacher.md").write_text(HTML, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def bundled_address(own) -> Iterator[str]:
    """Where the app answers with the bundled models: the other tests have put theirs in their place."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-u", "app.py", "--port", str(port), "--lessons", str(own)]
    server = subprocess.Popen(command, cwd=ROOT, env=dict(os.environ), stdout=subprocess.PIPE, text=True)
    assert any("Running on local URL" in line for line in server.stdout)
    yield f"http://127.0.0.1:{port}/"
    server.terminate()
    server.wait(timeout=60)


@pytest.fixture
def page(newcomer, bundled_address) -> Page:
    return newcomer(address=bundled_address).page


def column(page: Page) -> Locator:
    return page.locator("#lesson .lesson")


def open_lesson(page: Page, address: str, **query):
    page.goto(address + "?" + "&".join(f"{name}={value}" for name, value in query.items()))
    expect(column(page)).to_be_visible()


def at_step(page: Page, step: Step, place: int, steps: int):
    """The step is on show, its pictures drawn, and what it hides is hidden."""
    expect(column(page).locator("h2")).to_have_text(step.title)
    expect(column(page).locator(".of")).to_contain_text(f"{place} of {steps}")
    page.wait_for_function("!document.querySelector('[data-old-since]')")
    for name in step.hides:
        expect(page.locator(f"#{name} > *").first).to_be_hidden()
    if step.target and step.target not in step.hides:
        expect(page.locator(f"#{step.target}")).to_contain_class("pointed-out")


def reply(page: Page, step: Step):
    """Replies as somebody would who does not know better."""
    question, kind = column(page).locator(".question"), type(step.question).__name__
    if kind in ("Choice", "LargestCell") or (kind == "TopToken" and step.question.options):
        question.locator(".option, .cell").first.click()
    elif kind == "TopToken":
        question.locator("input").fill("moon")
        question.locator("input").press("Enter")
    elif kind in ("Number", "Curve"):
        question.locator(".reply").click()
    elif step.question.blanks == "none":
        return
    else:
        for box in question.locator("input").all():
            box.fill("1")
        question.locator("input").last.press("Enter")
    expect(column(page).locator(".verdict p")).to_have_text(re.compile("^[✓✗]"))
    expect(question.get_by_role("button", name="Ask me again")).to_be_visible()
    for name in step.hides:
        expect(page.locator(f"#{name} > *").first).not_to_have_css("visibility", "hidden")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name == WALKED else pytest.mark.exhaustive) for name in LESSONS]
)
def test_a_lesson_is_gone_through_to_its_end(page, bundled_address, name):
    lesson = LESSONS[name]
    open_lesson(page, bundled_address, lesson=name)
    for place, step in enumerate(lesson.steps, 1):
        at_step(page, step, place, len(lesson.steps))
        if step.question:
            reply(page, step)
        if step.question or not step.task:
            expect(column(page).locator(".after > *")).to_have_count(len(step.after))
        else:
            expect(column(page).locator(".verdict p")).not_to_have_text(re.compile("^✓"))
            expect(column(page).locator(".after > *")).to_have_count(0)
        column(page).get_by_role("button", name="Next" if place < len(lesson.steps) else "Finish").click()
    expect(column(page)).to_be_hidden()
    assert "lesson=" not in page.url or page.wait_for_function("!location.search.includes('lesson=')")
