"""What people who see otherwise, or use no mouse, find."""

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from explorer.style import DARK, LIGHT
from explorer.views import VIEWS

DRAWN = """(colour) => [...document.querySelectorAll("#views .plot")].filter((plot) => plot.clientWidth)
  .every(({ dataset, clientWidth, _fullLayout: { font, width } = {} }) =>
    dataset.draws && font.color === colour && width === clientWidth)"""
FOCUSED_TAB = "document.activeElement.closest('#views .tab-wrapper') && document.activeElement.textContent"
LOOKS = [("wide", LIGHT), ("wide", DARK), ("narrow", LIGHT), ("narrow", DARK)]


@pytest.mark.parametrize(("width", "theme"), LOOKS, ids=["light", "dark", "light telephone", "dark telephone"])
def test_axe_finds_nothing_wrong(newcomer, width, theme):
    size = {"width": 1440, "height": 900} if width == "wide" else {"width": 390, "height": 844}
    # nothing moves, so that no colour is read on its way to another
    person = newcomer(viewport=size, color_scheme="dark" if theme is DARK else "light", reduced_motion="reduce")
    person.open(view=VIEWS[0].name)
    for view in VIEWS:
        person.tab(view.title)
        person.page.wait_for_function(DRAWN, arg=theme.text)
        found = Axe().run(person.page).response["violations"]
        assert not [told(violation) for violation in found], view.title


def told(violation: dict) -> str:
    """What axe says of the first element."""
    node = violation["nodes"][0]
    return f"{violation['id']}: {node['html'][:160]}: {node['failureSummary']}"


def test_the_tabs_are_one_stop_of_the_tab_key(person):
    tab = person.page.get_by_role("tab", name="Attention")
    expect(tab).to_have_attribute("tabindex", "0")
    tab.focus()
    for key, title in (("ArrowRight", VIEWS[3].title), ("ArrowLeft", "Attention"), ("Home", VIEWS[0].title)):
        person.page.keyboard.press(key)
        chosen = person.page.get_by_role("tab", name=title)
        expect(chosen).to_be_focused()
        expect(chosen).to_have_attribute("aria-selected", "true")
    person.expect_selected(view=VIEWS[0].name)
    person.page.keyboard.press("Tab")
    assert not person.page.evaluate(FOCUSED_TAB)
    person.page.keyboard.press("Shift+Tab")
    assert person.page.evaluate(FOCUSED_TAB) == VIEWS[0].title


def test_the_menu_of_tabs_is_reached_by_the_arrow_keys(newcomer):
    person = newcomer(viewport={"width": 390, "height": 844}).open(view=VIEWS[0].name)
    tab = person.page.get_by_role("tab", name=VIEWS[0].title)
    expect(tab).to_have_attribute("tabindex", "0")
    tab.focus()
    person.page.keyboard.press("ArrowLeft")
    expect(person.page.get_by_role("button", name="More tabs")).to_be_focused()
    person.page.keyboard.press("Enter")
    expect(person.page.locator(".overflow-dropdown").get_by_role("button").first).to_be_visible()
