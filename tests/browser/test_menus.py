"""Menus of views beside the tabs."""

import pytest
from playwright.sync_api import Locator, expect

from tests.exhaustive import first_in_core

from .person import Person


def find_menu(person: Person, title: str) -> Locator:
    return person.page.locator(".view-menu").filter(has=person.page.locator("summary", has_text=title))


def test_menu_opens_view_and_shows_its_title(person):
    tries, further = find_menu(person, "Try"), find_menu(person, "Further")
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
def test_menu_works_by_keyboard_and_closes_with_escape(person, title):
    summary, items = find_menu(person, title).locator("summary"), find_menu(person, title).locator("[data-view]")
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
    person.chips.first.click()  # outside the menu
    expect(items.first).to_be_hidden()


@pytest.mark.parametrize("width", first_in_core([768, 390, 1440]))
def test_menus_are_on_screen_and_on_top(open_page, width):
    person = open_page(viewport={"width": width, "height": 844})
    for title in ("Try", "Further"):
        find_menu(person, title).locator("summary").click()
        for item in find_menu(person, title).locator("[data-view]").all():
            expect(item).to_be_in_viewport(ratio=1)
            item.click(trial=True)  # fails if another element covers it
        person.page.keyboard.press("Escape")
