"""Updates of the map animate only what differs, and the running sum is aligned below its components."""

import re

import pytest
from playwright.sync_api import expect

from .map_expectations import LONGEST_TRANSITION, open_map, wait_for_map


def test_new_selection_updates_map_in_place(open_page):
    person, figure = open_map(open_page)
    figure.evaluate("(map) => { for (const node of map.querySelectorAll('svg *')) node.kept = true; }")
    before = figure.locator(".part").first.get_attribute("aria-label")
    with person.wait_for_redraw(figure):
        person.chips.nth(3).click()
    assert figure.locator(".part").first.get_attribute("aria-label") != before
    assert figure.evaluate("(map) => [...map.querySelectorAll('svg *')].every((node) => node.kept)")


@pytest.mark.exhaustive
def test_animations_are_short_and_respect_reduced_motion(open_new_page):
    person = open_new_page().open("overview")
    figure = wait_for_map(person)
    assert 0 < figure.evaluate(LONGEST_TRANSITION) <= 0.2
    person.page.emulate_media(reduced_motion="reduce")
    assert figure.evaluate(LONGEST_TRANSITION) == 0


@pytest.mark.exhaustive
@pytest.mark.parametrize("width", [1440, 620])
def test_running_sum_steps_are_below_their_components(open_page, width):
    """Exact to a fraction of a pixel, at every width."""
    person, figure = open_map(open_page)
    person.page.set_viewport_size({"width": width, "height": 900})
    person.page.locator("#overview-sum h2 button").click()  # folded at first
    plot = person.page.locator("#overview-sum .plot")
    plot.scroll_into_view_if_needed()
    expect(plot).to_have_attribute("data-draws", re.compile(r"\d"))
    person.page.wait_for_function("(plot) => plot._fullLayout?.width === plot.clientWidth", arg=plot.element_handle())
    middles = (
        "(nodes) => nodes.map((node) => { const { x, width } = node.getBoundingClientRect(); return x + width / 2; })"
    )
    steps = plot.locator(".barlayer .point path").evaluate_all(middles)
    shapes = figure.locator(":is(.token, .addition, .norm, .lm_head) > .shape")
    kinds = shapes.evaluate_all("(nodes) => nodes.map((node) => node.parentElement.classList[1])")
    positions = dict(zip(map(tuple, enumerate(kinds)), shapes.evaluate_all(middles), strict=True))
    wanted = [x for (_, kind), x in positions.items() if kind in ("token", "addition")]
    wanted += [x for (_, kind), x in positions.items() if kind == "norm"][-1:]
    wanted += [x for (_, kind), x in positions.items() if kind == "lm_head"]
    assert steps == pytest.approx(wanted, abs=0.6)
