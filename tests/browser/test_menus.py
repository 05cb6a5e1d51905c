"""The lists of views that stand beside the tabs."""

import pytest
from playwright.sync_api import Locator, expect

from tests.exhaustive import first_in_core

from .person import Person


def menu(person: Person, title: str) -> Locator:
    return person.page.locator(".view-menu").filter(has=person.page.locator("summary", has_text=title))


def test_a_view_is_chosen_from_a_list_that_then_names_it(person):
    tries, further = menu(person, "Try"), menu(person, "Further")
    expect(tries.locator("[data-view]:visible")).to_have_count(0)
    tries.locator("summary").click()
    expect(further.locator("[data-view]:visible")).to_have_count(0)
    tries.get_by_role("button", name="Change", exact=True).click()
    person.expect_selected(view="experiments")
    expect(tries.locator("[data-view]:visible")).to_have_count(0)
    expect(tries.locator("summary")).to_be_focused()
    expect(tries.locator("summary")).to_have_text("Try: Change")
    expect(tries.locator("[aria-current=page]")).to_have_text("Change")
    expect(further.locator("summary")).to_have_text("Further")
    expect(person.page.locator("#views [role=tab][aria-selected=true]")).to_have_count(0)
    person.tab("Tokens")
    expect(tries.locator("summary")).to_have_text("Try")
    expect(tries.locator("[aria-current]")).to_have_count(0)


@pytest.mark.parametrize("title", first_in_core(["Try", "Further"]))
def test_a_list_of_views_is_gone_through_by_the_keyboard_and_closes_by_escape(person, title):
    summary, items = menu(person, title).locator("summary"), menu(person, title).locator("[data-view]")
    summary.focus()
    person.page.keyboard.press("Enter")
    expect(items.last).to_be_in_viewport(ratio=1)
    person.page.keyboard.press("Tab")
    expect(items.first).to_be_focused()
    person.page.keyboard.press("Escape")
    expect(items.first).to_be_hidden()
    expect(summary).to_be_focused()
    assert person.state["view"] == "attention"
    person.page.keyboard.press("Enter")
    expect(items.first).to_be_visible()
    person.chips.first.click()  # elsewhere
    expect(items.first).to_be_hidden()


@pytest.mark.parametrize("width", first_in_core([768, 390, 1440]))
def test_lists_of_views_lie_within_the_screen_and_over_all_else(visitor, width):
    person = visitor(viewport={"width": width, "height": 844})
    for title in ("Try", "Further"):
        menu(person, title).locator("summary").click()
        for item in menu(person, title).locator("[data-view]").all():
            expect(item).to_be_in_viewport(ratio=1)
            item.click(trial=True)  # fails if something lies over it
        person.page.keyboard.press("Escape")
