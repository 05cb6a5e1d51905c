"""Attention lines between tokens: hovering over one isolates its lines."""

import re

import pytest
from playwright.sync_api import expect

from tests.exhaustive import first_in_core

POINT_TO_SCREEN = """(plot, [x, y]) => {
  const { xaxis, yaxis } = plot._fullLayout, box = plot.getBoundingClientRect();
  return [box.left + xaxis._offset + xaxis.c2p(x), box.top + yaxis._offset + yaxis.c2p(y)];
}"""
# Isolated lines as (query, key), read from the paths that are drawn over all others.
ISOLATED_LINES = """(plot) => [...plot.querySelectorAll(".alone")].flatMap((path) => {
  const { xaxis, yaxis } = plot._fullLayout;
  return [...path.getAttribute("d").matchAll(/M[^,]+,([^L]+)L[^,]+,([^M]+)/g)]
    .map(([, from, to]) => [from, to].map((y) => Math.round(yaxis.p2c(+y))).join());
}).sort()"""
ALL_LINES = """(plot) => plot.calcdata.filter(([{ trace }]) => trace.mode === "lines").flatMap((points) =>
  points.flatMap((p, i) => (p.x === 0 && points[i + 1]?.x === 1 ? [[p.y, points[i + 1].y].join()] : []))).sort()"""


@pytest.fixture
def person(open_page, open_figures):
    return open_page(unfolded=open_figures or "attention-lines")


@pytest.fixture
def plot(person):
    plot = person.page.locator("#attention-lines .plot")
    plot.scroll_into_view_if_needed()
    expect(plot).to_have_attribute("data-draws", re.compile(r"\d"))
    return plot


def get_token_lines(plot, side: int, token: int) -> list[str]:
    lines = [line for line in plot.evaluate(ALL_LINES) if line.split(",")[side] == str(token)]
    assert lines
    return lines


@pytest.mark.parametrize("side", first_in_core([0, 1]), ids=["query", "key"])
def test_hovering_over_token_isolates_its_lines(person, plot, side):
    draws = plot.get_attribute("data-draws")
    token = int(plot.evaluate(ALL_LINES)[0].split(",")[side])
    person.page.mouse.move(*plot.evaluate(POINT_TO_SCREEN, [side, token]))
    expect(plot).to_have_class(re.compile("isolating"))
    assert plot.evaluate(ISOLATED_LINES) == get_token_lines(plot, side, token)
    person.page.mouse.move(0, 0)
    expect(plot).not_to_have_class(re.compile("isolating"))
    assert plot.evaluate(ISOLATED_LINES) == []
    assert plot.get_attribute("data-draws") == draws  # nothing was redrawn


@pytest.mark.exhaustive
def test_hovering_over_line_isolates_it(person, plot):
    query, key = map(int, plot.evaluate(ALL_LINES)[-1].split(","))
    person.page.mouse.move(*plot.evaluate(POINT_TO_SCREEN, [0.3, query + 0.3 * (key - query)]))
    expect(plot).to_have_class(re.compile("isolating"))
    assert len(plot.evaluate(ISOLATED_LINES)) == 1


@pytest.mark.exhaustive
def test_arrow_keys_move_between_tokens_of_lines(person, plot):
    plot.evaluate("(plot) => { const before = plot.ownerDocument.activeElement; plot.focus({ focusVisible: true }); }")
    expect(plot).to_have_class(re.compile("isolating"))
    before = person.state["query"]
    with person.wait_for_redraw(plot):
        person.page.keyboard.press("ArrowUp")
    person.expect_selected(query=before - 1)
    assert plot.evaluate(ISOLATED_LINES) == get_token_lines(plot, 0, before - 1)
    person.page.keyboard.press("Escape")
    expect(plot).not_to_have_class(re.compile("isolating"))


@pytest.mark.exhaustive
def test_tap_isolates_lines_of_token(open_new_page, touchscreen):
    person = open_new_page(viewport={"width": 390, "height": 844}, profile=touchscreen).open()
    plot = person.page.locator("#attention-lines .plot")
    plot.scroll_into_view_if_needed()
    expect(plot).to_have_attribute("data-draws", re.compile(r"\d"))
    token = int(plot.evaluate(ALL_LINES)[0].split(",")[0])
    with person.wait_for_redraw(plot):  # a tap also selects the token
        person.page.touchscreen.tap(*plot.evaluate(POINT_TO_SCREEN, [0, token]))
    expect(plot).to_have_class(re.compile("isolating"))
    assert plot.evaluate(ISOLATED_LINES) == get_token_lines(plot, 0, token)
