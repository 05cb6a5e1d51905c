"""Verification badges below figures, and derivations of clicked numbers."""

import re

import pytest
from playwright.sync_api import expect

from .person import CELL


@pytest.mark.exhaustive
def test_figures_offer_no_upload(person):
    assert person.page.locator(".modebar-btn").count() > 0
    expect(person.page.locator(".modebar-btn[data-title*='hare']")).to_have_count(0)


def test_clicked_number_shows_its_derivation(person):
    derivation_text = person.page.locator('[data-of="attention-pattern"]')
    person.click_cell(person.pattern, 2, 5)
    expect(derivation_text).to_contain_text("recomputed")
    expect(derivation_text).to_contain_text("then softmax")
    expect(derivation_text).not_to_contain_text("attention.py")  # code is shown at another depth only
    expect(derivation_text).to_contain_text("(5) → key")
    person.chips.nth(1).click()
    expect(derivation_text).to_be_hidden()


# Middle of a bar of a group, by the index of its trace and its index within.
BAR_MIDDLE = """(plot, [trace, item]) => {
  const group = [...plot.querySelectorAll(".barlayer .trace")][trace].querySelectorAll(".point path")[item];
  const { left, top, width, height } = group.getBoundingClientRect();
  return [left + width / 2, top + height / 2];
}"""


def test_click_on_grouped_bar_derives_that_bar(open_page):
    person = open_page("feed_forward", layer=1)
    plot = person.page.locator("#feed_forward-strongest .plot")
    for trace, tap in enumerate(("gate", "up", "hidden")):
        person.wait_until_idle()
        plot.scroll_into_view_if_needed()
        person.page.mouse.click(*plot.evaluate(BAR_MIDDLE, [trace, 3]))
        expect(person.page.locator('[data-of="feed_forward-strongest"]')).to_contain_text(f"{tap} =")


LAPTOP, TELEPHONE = {"width": 1366, "height": 768}, {"width": 390, "height": 844}


def test_derivation_stays_until_closed(open_page):
    person = open_page("attention", unfolded="", depth="formula")
    derivation_text = person.page.locator('[data-of="attention-pattern"]')
    for viewport in LAPTOP, TELEPHONE:
        person.page.set_viewport_size(viewport)
        person.wait_until_idle()
        person.pattern.evaluate("(plot) => plot.scrollIntoView({ block: 'end' })")  # nothing below it is visible
        person.click_cell(person.pattern, 2, 5)
        expect(derivation_text).to_be_in_viewport(ratio=1)  # scrolled there, with the cell
        _left, top = person.pattern.evaluate(CELL, [2, 5])
        assert top > 100, (viewport, top)
        derivation_text.get_by_role("button", name="close").click()
        expect(derivation_text).to_be_hidden()
    person.click_cell(person.pattern, 2, 5)
    person.page.locator("#attention-row .unfold").click()
    person.wait_until_idle()
    expect(derivation_text).to_be_visible()
    derivation_text.get_by_role("button", name="close").click()
    expect(derivation_text).to_be_hidden()


def test_every_figure_has_verification_badge(person):
    mark = person.page.locator("#attention-pattern .evidence-mark")
    expect(mark).to_contain_text("recomputed, largest error")
    expect(mark).to_have_attribute("title", re.compile("attn.pattern from attn.scores"))
