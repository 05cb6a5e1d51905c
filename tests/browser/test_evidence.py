"""Verification badges below figures, and derivations of clicked numbers."""

import re

import pytest
from playwright.sync_api import expect


@pytest.mark.exhaustive
def test_no_figure_offers_to_upload_itself(person):
    assert person.page.locator(".modebar-btn").count() > 0
    expect(person.page.locator(".modebar-btn[data-title*='hare']")).to_have_count(0)


def test_a_clicked_number_tells_how_it_comes_about(person):
    derivation_text = person.page.locator('[data-of="attention-pattern"]')
    person.click_cell(person.pattern, 2, 5)
    expect(derivation_text).to_contain_text("recomputed")
    expect(derivation_text).to_contain_text("then softmax")
    expect(derivation_text).not_to_contain_text("attention.py")  # where numbers are asked for, not code
    expect(derivation_text).to_contain_text("(5) → key")
    person.chips.nth(1).click()
    expect(derivation_text).to_be_hidden()


# The middle of a bar of a group, by the trace and the place in it.
BAR_MIDDLE = """(plot, [trace, item]) => {
  const group = [...plot.querySelectorAll(".barlayer .trace")][trace].querySelectorAll(".point path")[item];
  const { left, top, width, height } = group.getBoundingClientRect();
  return [left + width / 2, top + height / 2];
}"""


def test_a_click_on_a_bar_of_several_derives_that_bar(visitor):
    person = visitor("feed_forward", layer=1)
    plot = person.page.locator("#feed_forward-strongest .plot")
    for trace, tap in enumerate(("gate", "up", "hidden")):
        person.at_rest()
        plot.scroll_into_view_if_needed()
        person.page.mouse.click(*plot.evaluate(BAR_MIDDLE, [trace, 3]))
        expect(person.page.locator("#feed_forward-strongest .inspection")).to_contain_text(f"{tap} =")


def test_a_derivation_stays_while_another_figure_is_unfolded_and_until_it_is_closed(visitor):
    person = visitor("attention", unfolded="")
    derivation_text = person.page.locator('[data-of="attention-pattern"]')
    person.click_cell(person.pattern, 2, 5)
    expect(derivation_text).to_contain_text("recomputed")
    expect(derivation_text).to_be_in_viewport(ratio=1)
    person.page.locator("#attention-row .unfold").click()
    person.at_rest()
    expect(derivation_text).to_be_visible()
    derivation_text.get_by_role("button", name="close").click()
    expect(derivation_text).to_be_hidden()


def test_every_picture_says_what_vouches_for_it(person):
    mark = person.page.locator("#attention-pattern .evidence-mark")
    expect(mark).to_contain_text("recomputed, largest error")
    expect(mark).to_have_attribute("title", re.compile("attn.pattern from attn.scores"))
