"""Steps of a lesson in the browser: locators, expectations and replies."""

import re

from playwright.sync_api import Locator, Page, expect

from explorer.lessons.lesson import LessonLibrary, LessonStep
from explorer.views import VIEW_BY_NAME

from ..legibility import ALL_DRAWN

LESSONS = LessonLibrary().lessons

PHONE = {"width": 390, "height": 844}

CORE_LESSON = "who-looks-at-whom"  # part of the core test suite


def steps_by_question_kind() -> list[tuple[str, int]]:
    """Return lesson and number of the first step with each kind of question that the core lesson lacks."""
    first_steps = {}
    for name in (CORE_LESSON, *LESSONS):
        for number, step in enumerate(LESSONS[name].steps, 1):
            if step.question and getattr(step.question, "blanks", "") != "none":
                kind = type(step.question), bool(getattr(step.question, "options", ()))
                first_steps.setdefault(kind, (name, number))
    return [(name, number) for name, number in first_steps.values() if name != CORE_LESSON]


def find_lesson(page: Page) -> Locator:
    return page.locator("#lesson .lesson")


def open_lesson(page: Page, address: str, **query):
    page.goto(address + "?" + "&".join(f"{name}={value}" for name, value in query.items()))
    expect(find_lesson(page)).to_be_visible()


NAVIGATION = "#navigation, #search, #present, #copy, #prompt-row, #mode, #lessons, #glossary, footer"
FIGURES_IN_SIGHT = """[...document.querySelectorAll("#view .panels > .block, #next-token")]
  .filter((figure) => figure.getBoundingClientRect().height).map(({ id }) => id)"""


def expect_one_figure(page: Page, step: LessonStep):
    """Expect only the step's text and one figure to be visible, without navigation; for a task the next one, too."""
    if step.target == "prompt":
        expect(page.locator("#navigation")).to_be_hidden()
        return expect(page.locator("#prompt")).to_be_visible()
    expect(page.locator(NAVIGATION).locator("visible=true")).to_have_count(0)
    if step.task:
        page.wait_for_function(f"({FIGURES_IN_SIGHT}).length === 2")
        return expect(page.locator(f"#{step.target}")).to_be_in_viewport()
    page.wait_for_function(f"({FIGURES_IN_SIGHT}).length === 1")
    in_sight = page.evaluate(FIGURES_IN_SIGHT)
    if step.target.split("-")[0] in VIEW_BY_NAME and not step.target.endswith("-what-ifs"):
        assert in_sight == [step.target]
    expect(page.locator(f"#{in_sight[0]}")).to_be_in_viewport()


def expect_step(page: Page, step: LessonStep, number: int, steps: int):
    """Expect a step to be visible, its figures drawn, and its hidden panels hidden."""
    expect(find_lesson(page).locator("h2")).to_have_text(step.title)
    expect(find_lesson(page).locator(".of")).to_contain_text(f"{number} of {steps}")
    expect_one_figure(page, step)
    page.wait_for_function(ALL_DRAWN)
    for name in step.hidden_figures:
        expect(page.locator(f"#{name} > *").first).to_be_hidden()
    if step.target and step.target not in step.hidden_figures:
        expect(page.locator(f"#{step.target}")).to_contain_class("pointed-out")


def reply(page: Page, step: LessonStep):
    """Reply to a step's question with an arbitrary answer."""
    question, kind = find_lesson(page).locator(".question"), type(step.question).__name__
    if kind in ("ChoiceQuestion", "LargestCellQuestion") or (kind == "TokenQuestion" and step.question.options):
        question.locator(".option, .cell").first.click()
    elif kind == "TokenQuestion":
        question.locator("input").fill("moon")
        question.locator("input").press("Enter")
    elif kind in ("NumberQuestion", "CurveQuestion"):
        question.locator(".reply").click()
    elif step.question.blanks == "none":
        return
    else:
        for box in question.locator("input").all():
            box.fill("1")
        question.locator("input").last.press("Enter")
    expect(find_lesson(page).locator(".verdict p")).to_have_text(re.compile("^[✓✗]"))
    expect(question.get_by_role("button", name="Ask me again")).to_be_visible()
    for name in step.hidden_figures:
        expect(page.locator(f"#{name} > *").first).not_to_have_css("visibility", "hidden")


def open_next_step(page: Page):
    find_lesson(page).locator(".next").click()


def get_figure(page: Page, name: str) -> Locator:
    return page.locator(f"#{name} .html-container").first
