"""The page before a first-time user's first action."""

import re

import pytest
from playwright.sync_api import expect

from explorer.web.actions.page_actions import FIRST_PROMPT
from tests.exhaustive import first_in_core

from .person import ANSWER

# Whether the page's columns are visible as soon as they exist.
RECORD_VISIBILITY = """new MutationObserver(() => {
  window.seenAtFirst ??= document.querySelector("#columns")?.checkVisibility({ visibilityProperty: true });
}).observe(document, { childList: true, subtree: true })"""
# As in a frame that the browser denies storage.
DENY_STORAGE = """for (const area of ["localStorage", "sessionStorage"])
  Object.defineProperty(window, area, { get() { throw new DOMException("denied", "SecurityError"); } })"""


@pytest.mark.parametrize(
    "seen",
    first_in_core(
        [
            ("pieces", "#pieces-expected .plot", "#guess .guess"),
            ("overview", "#overview-whole [data-draws]", "#next-token .distribution"),
        ]
    ),
)
def test_captured_example_is_drawn_immediately(open_new_page, seen):
    view, *figures = seen
    person = open_new_page().open(view=view)
    expect(person.strip).to_have_text(FIRST_PROMPT)
    for drawing in map(person.page.locator, figures):
        expect(drawing).to_be_visible()
        expect(drawing).to_have_attribute("data-draws", re.compile(r"\d"))
    expect(person.prompt).to_have_value(FIRST_PROMPT)
    expect(person.picker).to_have_value("tiny")


def test_page_works_without_storage(open_new_page):
    person = open_new_page()
    person.page.add_init_script(DENY_STORAGE)
    person.open("")
    person.run("the fox asked the owl")
    expect(person.strip).to_have_text("the fox asked the owl")
    person.change_theme()
    person.page.close()  # as its storage cannot be cleared


def test_early_button_press_waits_for_page(open_new_page):
    person, held = open_new_page(), []
    person.page.route(ANSWER, lambda route: held.append(route), times=1)
    with person.page.expect_request(ANSWER):
        person.page.goto(f"{person.address}?view=overview")
    step = person.page.get_by_role("button", name="Step", exact=True)
    step.click()
    expect(step).to_be_focused()
    expect(person.strip).to_be_visible()
    expect(person.page.locator("#strip-b")).to_be_hidden()  # second run's tokens
    held[0].continue_()
    expect(person.chips.and_(person.page.locator(".generated"))).to_have_count(1)
    expect(person.story.locator(".prompt")).to_have_text(FIRST_PROMPT)
    assert not person.warning.count()


def test_page_appears_once_complete_and_does_not_jump(open_new_page):
    person, held = open_new_page(), []
    person.page.route(ANSWER, lambda route: held.append(route), times=1)
    person.page.add_init_script(RECORD_VISIBILITY)
    person.page.goto(person.address)
    guess = person.page.locator("#guess")
    expect(guess).to_be_visible()
    assert person.page.evaluate("seenAtFirst") is False
    expect(person.page.locator("#steps")).to_be_hidden()  # hidden until the guess is made
    before = guess.bounding_box()
    held[0].continue_()
    expect(guess.locator(".see")).to_be_visible()
    assert guess.bounding_box() == pytest.approx(before, abs=2)


def test_figures_wait_for_plotly(open_new_page):
    person, held = open_new_page(), []
    person.page.route("**/plotly.js", lambda route: held.append(route), times=1)
    person.page.goto(f"{person.address}?view=attention", wait_until="commit")
    expect(person.prediction).to_have_attribute("data-draws", re.compile(r"\d"))
    held[0].continue_()
    expect(person.pattern).to_have_attribute("data-draws", re.compile(r"\d"))
