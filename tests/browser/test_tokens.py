"""Tokens tab."""

import re

import pytest
from playwright.sync_api import expect

WIDTH = "(element) => element.getBoundingClientRect().width"


def test_table_row_selects_its_token(open_page):
    person = open_page(unfolded="tokens-table~tokens-merges")
    person.tab("Tokens")
    table, merges = (person.page.locator(f"#tokens-{name} .plot") for name in ("table", "merges"))
    expect(merges.locator(".main-svg").first).to_be_visible()
    query = person.chips.count() - 4  # a long table shows the tokens near the selected one, here the last
    with person.wait_for_redraw(merges, table):
        person.click_cell(table, x=2, y=query)
    person.expect_selected(view="tokens", query=query)
    expect(person.chips.nth(query)).to_have_attribute("aria-selected", "true")
    token = person.chips.nth(query).text_content().replace(" ", "·")
    expect(merges).to_have_attribute("aria-label", re.compile(re.escape(f"“{token}”")))


@pytest.mark.exhaustive
def test_scatter_point_selects_its_token(open_page):
    person = open_page(view="tokens", query=0)
    spread = person.page.locator("#tokens-spread .plot")
    expect(spread.locator(".main-svg").first).to_be_visible()
    with person.wait_for_redraw(spread):
        person.chooser("residual_depth").select_option("2")
    x, y = spread.evaluate("plot => [plot._fullData[0].x[7], plot._fullData[0].y[7]]")
    person.click_cell(spread, x=x, y=y)
    person.expect_selected(query=7, residual_depth=2)


@pytest.mark.exhaustive
def test_position_figure_is_shown_for_added_positions_only(open_page):
    person = open_page(view="tokens")
    spread, positions = (person.page.locator(f"#tokens-{name} .plot") for name in ("spread", "positions"))
    expect(spread.locator(".main-svg").first).to_be_visible()
    expect(positions).to_be_hidden()
    wide = spread.evaluate(WIDTH)
    person.choose_model("gpt-twin")
    expect(positions.locator(".main-svg").first).to_be_visible()
    assert spread.evaluate(WIDTH) < 0.6 * wide
    person.click_cell(positions, x=3, y=2)
    person.expect_selected(query=2, dim=3)
    person.choose_model("tiny")
    expect(positions).to_be_hidden()
