"""Rarely used controls are folded away on a telephone, so that a tab's text comes early."""

import pytest
from playwright.sync_api import expect

from tests.exhaustive import first_in_core

TELEPHONE = {"width": 390, "height": 844}
TOPS = """(view) => {
  const top = (selector) => document.querySelector(selector).getBoundingClientRect().top;
  return [`#${view}-words`, `#${view}-formula`, "#bar"].map((place) => top(place) - top("#views"));
}"""


@pytest.mark.parametrize("view", first_in_core(["attention", "patching"]))
def test_a_telephone_shows_a_tab_s_sentences_before_its_controls(visitor, view):
    person = visitor(view, viewport=TELEPHONE).at_rest()
    prose_top, formula, bar = person.page.evaluate(TOPS, view)
    assert prose_top < 80
    assert formula < 360
    assert bar > 200  # so much of the tab is in sight without scrolling


@pytest.mark.exhaustive
def test_a_line_says_what_is_chosen_and_opens_the_lists_by_the_keyboard(visitor):
    person = visitor(viewport=TELEPHONE)
    line = person.page.locator("#attention-choosers .fold")
    expect(line).to_contain_text("layer 1")
    expect(person.chooser("layer")).to_have_count(0)
    line.press("Enter")
    expect(line).to_have_attribute("aria-expanded", "true")
    person.chooser("layer").select_option("0")
    expect(line).to_contain_text("layer 0")
    line.press("Enter")
    expect(person.chooser("layer")).to_have_count(0)


@pytest.mark.exhaustive
def test_a_line_says_how_much_is_changed(visitor):
    person = visitor(viewport=TELEPHONE)
    line = person.page.locator("#attention-what-ifs .fold")
    expect(line).to_have_text("Change")
    line.click()
    person.page.locator("#attention-what-ifs input[type=checkbox]").nth(1).check()
    expect(line).to_have_text("changed here: 1")


def test_all_that_the_page_has_is_a_click_away_on_a_telephone(newcomer):
    person = newcomer(viewport=TELEPHONE).open()
    page = person.page
    behind = ["#facts", "#language", "#share", "#strip label:not(.beginning)"]
    for selector in behind:
        expect(page.locator(selector)).to_be_hidden()
    page.locator("#more-of-header button").click()
    for selector in behind:
        expect(page.locator(selector)).to_be_visible()


@pytest.mark.exhaustive
def test_a_wide_screen_shows_the_lists(person):
    expect(person.chooser("layer")).to_be_visible()
    expect(person.page.locator("#attention-choosers .fold")).to_be_hidden()
