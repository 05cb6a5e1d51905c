"""Tokens tab."""

import re

import pytest
from playwright.sync_api import expect

WIDTH = "(element) => element.getBoundingClientRect().width"


def test_a_row_of_the_table_chooses_its_token(visitor):
    person = visitor(unfolded="all")
    person.tab("Tokens")
    table, merges = (person.page.locator(f"#tokens-{name} .plot") for name in ("table", "merges"))
    expect(merges.locator(".main-svg").first).to_be_visible()
    query = person.chips.count() - 4  # of many tokens those about the chosen one are shown: now the last
    with person.redrawn(merges, table):
        person.click_cell(table, x=2, y=query)
    person.expect_selected(view="tokens", query=query)
    expect(person.chips.nth(query)).to_have_attribute("aria-selected", "true")
    token = person.chips.nth(query).text_content().replace(" ", "·")
    expect(merges).to_have_attribute("aria-label", re.compile(re.escape(f"“{token}”")))


@pytest.mark.exhaustive
def test_a_point_of_the_spread_chooses_its_token(visitor):
    person = visitor(view="tokens", query=0)
    spread = person.page.locator("#tokens-spread .plot")
    expect(spread.locator(".main-svg").first).to_be_visible()
    with person.redrawn(spread):
        person.chooser("residual_depth").select_option("2")
    x, y = spread.evaluate("plot => [plot._fullData[0].x[7], plot._fullData[0].y[7]]")
    person.click_cell(spread, x=x, y=y)
    person.expect_selected(query=7, residual_depth=2)


@pytest.mark.exhaustive
def test_positions_have_a_place_only_where_they_are_added(visitor):
    person = visitor(view="tokens")
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
