"""Keyboard control: arrow keys move between elements, and Enter clicks."""

import re

import pytest
from playwright.sync_api import expect


@pytest.mark.exhaustive
def test_arrow_keys_move_along_tokens(person):
    last = person.chips.count() - 1
    person.chips.nth(2).click()
    for key, position in (("ArrowRight", 3), ("ArrowLeft", 2), ("Home", 0), ("ArrowLeft", 0), ("End", last)):
        person.page.keyboard.press(key)
        expect(person.chips.nth(position)).to_be_focused()
        expect(person.chips.nth(position)).to_have_attribute("aria-selected", "true")
    person.expect_selected(query=last)
    expect(person.page.locator("#next-token-words")).to_contain_text(f"position {last}")


@pytest.mark.exhaustive
def test_arrow_keys_move_over_heads(open_page):
    person = open_page(layer=0, head=0)
    expect(person.grid).to_have_attribute("data-draws", re.compile(r"\d"))
    person.grid.locator("[data-layer='0'][data-head='0']").focus()
    for key, layer, head in (("ArrowRight", 0, 1), ("ArrowDown", 1, 1), ("ArrowRight", 1, 1), ("ArrowLeft", 1, 0)):
        person.page.keyboard.press(key)
        small = person.grid.locator(f"[data-layer='{layer}'][data-head='{head}']")
        expect(small).to_be_focused()
        expect(small).to_have_attribute("aria-pressed", "true")
    person.expect_selected(layer=1, head=0)
    person.page.keyboard.press("Enter")
    person.expect_selected(layer=1, head=0)


def test_heatmap_works_from_keyboard(person):
    person.click_cell(person.pattern, 2, 5)
    person.pattern.focus()
    for key, expected in (("ArrowLeft", (5, 1)), ("ArrowDown", (6, 1)), ("ArrowUp", (5, 1)), ("ArrowRight", (5, 2))):
        person.page.keyboard.press(key)
        person.expect_selected(query=expected[0], key=expected[1])
    person.page.keyboard.press("Enter")
    expect(person.page.locator('[data-of="attention-pattern"]')).to_contain_text("(5) → key")


def test_tab_key_reaches_first_figure_and_skip_link(open_new_page):
    person, stops = open_new_page().open().wait_until_idle(), 1
    person.wait_for_terms()
    person.page.keyboard.press("Tab")
    link = person.page.get_by_role("link", name="Skip to the figures")
    expect(link).to_be_focused()
    expect(link).to_be_in_viewport()
    while not person.page.evaluate("Boolean(document.activeElement.closest('.panels'))"):
        person.page.keyboard.press("Tab")
        stops += 1
        assert stops <= 12
    assert person.page.locator(".term[tabindex='0']").count() == 0
    link.press("Enter")
    expect(person.page.locator("[role=tab][aria-selected=true]:visible")).to_be_focused()


def test_toolbar_is_single_tab_stop_with_arrow_keys(person):
    person.page.get_by_role("button", name="Code", exact=True).focus()
    person.page.keyboard.press("ArrowRight")
    expect(person.picker).to_be_focused()
    person.page.keyboard.press("End")
    expect(person.page.locator("#page-menu summary")).to_be_focused()
    person.page.keyboard.press("Tab")
    expect(person.prompt).to_be_focused()
    outline = person.prompt.evaluate("(box) => getComputedStyle(box).outlineStyle + getComputedStyle(box).outlineWidth")
    assert outline == "solid2px"
    person.page.keyboard.press("Shift+Tab")
    expect(person.page.locator("#page-menu summary")).to_be_focused()  # returns to the last focused button
    layer = person.chooser("layer")
    layer.focus()
    person.page.keyboard.press("ArrowRight")
    expect(person.chooser("head")).to_be_focused()
    person.expect_selected(layer=1)  # the keys moved the focus and selected nothing


def test_t_key_moves_between_terms(person):
    person.wait_until_idle()
    person.wait_for_terms()
    person.page.get_by_role("tab", name="Attention").focus()
    person.page.keyboard.press("t")
    terms = person.page.locator("#main .term:visible")  # from the tabs on
    expect(terms.first).to_be_focused()
    expect(person.page.locator("#definition")).to_be_visible()
    person.page.keyboard.press("t")
    expect(terms.nth(1)).to_be_focused()
    person.page.keyboard.press("Shift+T")
    expect(terms.first).to_be_focused()
