"""How a person goes through a lesson."""

import re

from playwright.sync_api import Locator, Page, expect

from explorer.lessons.course.lesson import Step
from explorer.lessons.course.shelf import Shelf

LESSONS = Shelf().lessons

PHONE = {"width": 390, "height": 844}

WALKED = "who-looks-at-whom"  # in the core suite


def ask_in_every_way() -> list[str]:
    """The lesson of the core suite, and each that asks in a way in which none before it does."""
    names, ways = [], set()
    for name in (WALKED, *LESSONS):
        asked = [step.question for step in LESSONS[name].steps]
        if others := {(type(question), bool(getattr(question, "options", ()))) for question in asked} - ways:
            names.append(name)
            ways |= others
    return names


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


def next_step(page: Page):
    column(page).get_by_role("button", name="Next").click()


def picture(page: Page, name: str) -> Locator:
    return page.locator(f"#{name} .html-container").first
