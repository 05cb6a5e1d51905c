"""Lines between tokens: pointing at one shows its lines alone."""

import re

import pytest
from playwright.sync_api import expect

from tests.exhaustive import first_in_core

PLACE = """(plot, [x, y]) => {
  const { xaxis, yaxis } = plot._fullLayout, box = plot.getBoundingClientRect();
  return [box.left + xaxis._offset + xaxis.c2p(x), box.top + yaxis._offset + yaxis.c2p(y)];
}"""
# The lines that are seen as (query, key): the copies laid over all others, read off their paths.
ALONE = """(plot) => [...plot.querySelectorAll(".alone")].flatMap((path) => {
  const { xaxis, yaxis } = plot._fullLayout;
  return [...path.getAttribute("d").matchAll(/M[^,]+,([^L]+)L[^,]+,([^M]+)/g)]
    .map(([, from, to]) => [from, to].map((y) => Math.round(yaxis.p2c(+y))).join());
}).sort()"""
ALL = """(plot) => plot.calcdata.filter(([{ trace }]) => trace.mode === "lines").flatMap((points) =>
  points.flatMap((p, i) => (p.x === 0 && points[i + 1]?.x === 1 ? [[p.y, points[i + 1].y].join()] : []))).sort()"""


@pytest.fixture
def person(visitor):
    return visitor(unfolded="all")


@pytest.fixture
def plot(person):
    plot = person.page.locator("#attention-lines .plot")
    plot.scroll_into_view_if_needed()
    expect(plot).to_have_attribute("data-draws", re.compile(r"\d"))
    return plot


def get_token_lines(plot, side: int, token: int) -> list[str]:
    lines = [line for line in plot.evaluate(ALL) if line.split(",")[side] == str(token)]
    assert lines
    return lines


@pytest.mark.parametrize("side", first_in_core([0, 1]), ids=["query", "key"])
def test_pointing_at_a_token_shows_its_lines_alone_and_leaving_restores(person, plot, side):
    draws = plot.get_attribute("data-draws")
    token = int(plot.evaluate(ALL)[0].split(",")[side])
    person.page.mouse.move(*plot.evaluate(PLACE, [side, token]))
    expect(plot).to_have_class(re.compile("isolating"))
    assert plot.evaluate(ALONE) == get_token_lines(plot, side, token)
    person.page.mouse.move(0, 0)
    expect(plot).not_to_have_class(re.compile("isolating"))
    assert plot.evaluate(ALONE) == []
    assert plot.get_attribute("data-draws") == draws  # and nothing was drawn anew


@pytest.mark.exhaustive
def test_pointing_at_a_line_shows_it_alone(person, plot):
    query, key = map(int, plot.evaluate(ALL)[-1].split(","))
    person.page.mouse.move(*plot.evaluate(PLACE, [0.3, query + 0.3 * (key - query)]))
    expect(plot).to_have_class(re.compile("isolating"))
    assert len(plot.evaluate(ALONE)) == 1


@pytest.mark.exhaustive
def test_the_arrow_keys_go_from_token_to_token(person, plot):
    plot.evaluate("(plot) => { const before = plot.ownerDocument.activeElement; plot.focus({ focusVisible: true }); }")
    expect(plot).to_have_class(re.compile("isolating"))
    before = person.state["query"]
    with person.redrawn(plot):
        person.page.keyboard.press("ArrowUp")
    person.expect_selected(query=before - 1)
    assert plot.evaluate(ALONE) == get_token_lines(plot, 0, before - 1)
    person.page.keyboard.press("Escape")
    expect(plot).not_to_have_class(re.compile("isolating"))


@pytest.mark.exhaustive
def test_a_tap_shows_a_tokens_lines(newcomer, touchscreen):
    person = newcomer(viewport={"width": 390, "height": 844}, profile=touchscreen).open()
    plot = person.page.locator("#attention-lines .plot")
    plot.scroll_into_view_if_needed()
    expect(plot).to_have_attribute("data-draws", re.compile(r"\d"))
    token = int(plot.evaluate(ALL)[0].split(",")[0])
    with person.redrawn(plot):  # a tap selects the token, too
        person.page.touchscreen.tap(*plot.evaluate(PLACE, [0, token]))
    expect(plot).to_have_class(re.compile("isolating"))
    assert plot.evaluate(ALONE) == get_token_lines(plot, 0, token)
