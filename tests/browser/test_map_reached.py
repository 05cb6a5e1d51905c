"""Map of the model by pointer, keyboard and touch: hover texts, selection and navigation."""

import re

import numpy as np
import pytest
from playwright.sync_api import Locator, expect

from .drawn_map import TELEPHONE, accessible_name, contrast, open_map, scroll_into_view, wait_for_map
from .person import Person

ARROWS = {"ArrowLeft": (-1, 0), "ArrowRight": (1, 0), "ArrowUp": (0, -1), "ArrowDown": (0, 1)}
# For every part and direction the part that the arrow key leads to, and where the parts are.
WALKED = """async ([map, directions]) => {
  const { href } = document.querySelector("link[rel=modulepreload][href$='/static/page.js']");
  const { nearestInDirection } = await import(href.replace("page.js", "dom.js"));
  const { a: scale } = map.querySelector("svg").getScreenCTM();
  const boxes = [...map.querySelectorAll(".part")].map((part) => {
    const { left, top, right, bottom } = part.firstChild.getBoundingClientRect();
    return [left, top, right, bottom].map((edge) => edge / scale);
  });
  return {
    walked: boxes.map((_box, i) => directions.map((direction) => nearestInDirection(boxes, i, direction))),
    middles: boxes.map(([left, top, right, bottom]) => [(left + right) / 2, (top + bottom) / 2]),
  };
}"""
STOPS = "(map) => [...map.querySelectorAll('[tabindex]')].filter((part) => part.tabIndex === 0).length"


@pytest.fixture
def tooltip(page_of_the_map) -> Locator:
    return page_of_the_map[0].page.locator("#overview-map .told")


@pytest.fixture
def page_of_the_map(visitor) -> tuple[Person, Locator]:
    return open_map(visitor, layer=0, head=0, query=9)


def get_centre(component: Locator) -> tuple[float, float]:
    box = component.locator(".shape").bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


@pytest.mark.exhaustive
def test_every_part_is_told_beside_the_pointer_and_within_the_figure(page_of_the_map, tooltip):
    person, figure = page_of_the_map
    components, whole = figure.locator(".part"), figure.bounding_box()
    for i in range(components.count()):
        component = components.nth(i)
        x, y = get_centre(component)
        person.page.mouse.move(x, y)
        expect(tooltip).to_be_visible()
        lines = tooltip.text_content().strip()
        assert component.get_attribute("aria-label") == accessible_name(
            lines, " ".join(component.locator("tspan").all_text_contents())
        )
        box = tooltip.bounding_box()
        assert not (box["x"] <= x <= box["x"] + box["width"] and box["y"] <= y + 12 <= box["y"] + box["height"] + 12), (
            lines
        )
        assert box["x"] >= whole["x"] and box["x"] + box["width"] <= whole["x"] + whole["width"] + 0.5, lines
        assert box["y"] >= whole["y"] and box["y"] + box["height"] <= whole["y"] + whole["height"] + 0.5, lines
    person.page.mouse.move(1, 1)
    expect(tooltip).to_be_hidden()


@pytest.mark.exhaustive
def test_what_is_told_follows_the_selection(page_of_the_map, tooltip):
    """The hover text changes even if the pointer does not move."""
    person, figure = page_of_the_map
    head = figure.locator(".part.head").nth(5)
    person.page.mouse.move(*get_centre(head))
    before = tooltip.text_content()
    with person.redrawn(figure):
        person.evaluate("actions.select({ query: 4 })")
    assert tooltip.text_content().strip().replace("\n", ", ") == head.get_attribute("aria-label") != before


# A part of each kind: where in the order of its kind, what a click opens and selects, and its working
CLICKS = {
    "token": (0, {"view": "tokens"}, "what the token’s embedding adds"),
    "position": (0, {"view": "positions"}, "what its position adds"),
    "head": (7, {"view": "attention", "layer": 1, "head": 3}, "what layer 1 head 3 adds"),
    "o_proj": (2, {"view": "attention", "layer": 2}, "what attention of layer 2 adds"),
    "feed_forward": (1, {"view": "feed_forward", "layer": 1}, "what the feed-forward of layer 1 adds"),
    "norm": (3, {"view": "residual", "layer": 1}, "what the norm divides by"),
    "addition": (3, {"view": "residual", "layer": 1}, "length of the stream"),
    "lm_head": (0, {"view": "prediction"}, "the captured logit"),
    "next_token": (2, {"view": "overview", "target": 3}, "probability"),
}


@pytest.mark.exhaustive
def test_a_click_opens_a_part_and_one_with_shift_tells_its_working(page_of_the_map):
    person, figure = page_of_the_map
    working = person.page.locator('[data-of="overview-map"]')
    for kind, (i, selects, derivation_text) in CLICKS.items():
        component = figure.locator(f".part.{kind}").nth(i)
        person.evaluate("actions.select({ layer: 0, head: 0, target: 1 })")
        person.at_rest()
        scroll_into_view(figure)
        person.page.keyboard.down("Shift")
        person.page.mouse.click(*get_centre(component))
        person.page.keyboard.up("Shift")
        expect(working).to_contain_text(derivation_text)
        expect(person.page.locator(".first-line")).to_be_in_viewport(ratio=1)
        assert person.state["view"] == "overview"
        scroll_into_view(figure)
        person.page.mouse.click(*get_centre(component))
        person.expect_selected(**{"layer": 0, "head": 0, "target": 1} | selects)
        expect(person.page.locator("#overview-map .told")).to_be_hidden() if kind != "next_token" else None
        person.visit("overview", "Whole model")
        expect(figure).to_be_visible()


def test_a_part_opens_its_tab_and_the_bar_the_one_before_while_the_queue_answers_nobody(visitor):
    person = visitor("overview", layer=0, head=0, query=9, unfolded="all")
    figure = wait_for_map(person)
    person.page.route("**/gradio_api/queue/**", lambda route: None)
    person.page.mouse.click(*get_centre(figure.locator(".part.norm").first))
    expect(person.page.get_by_role("tab", name="Residual stream")).to_have_attribute("aria-selected", "true")
    person.visit("overview", "Whole model")
    expect(figure).to_be_visible()


def test_the_arrow_keys_go_to_the_nearest_part_and_reach_all(page_of_the_map):
    person, figure = page_of_the_map
    assert figure.evaluate(STOPS) == 1
    reached_by_keys = person.page.evaluate(WALKED, [figure.element_handle(), list(ARROWS.values())])
    centres, walked = np.array(reached_by_keys["middles"]), np.array(reached_by_keys["walked"])
    for i, centre in enumerate(centres):
        for key, reached in zip(ARROWS.values(), walked[i], strict=True):
            along, aside = (centres - centre) @ key, np.abs((centres - centre) @ key[::-1])
            far = np.where(along > 0.5, along + 2 * aside, np.inf)
            nearest = np.isclose(far, far.min(), atol=0.1)
            assert nearest[reached] if np.isfinite(far).any() else reached == i
    within_reach, new = {0}, {0}
    while new:
        new = {int(j) for i in new for j in walked[i]} - within_reach
        within_reach |= new
    assert within_reach == set(range(len(centres)))


def test_the_keyboard_opens_tells_and_leaves(page_of_the_map, tooltip):
    person, figure = page_of_the_map
    figure.locator(".part.token").first.evaluate("(part) => part.focus({ focusVisible: true })")
    person.page.keyboard.press("Shift+Tab")
    expect(tooltip).to_be_hidden()
    person.page.keyboard.press("Tab")
    keyboard = person.page.keyboard
    focused = figure.locator(".part:focus")
    for key, name in (("ArrowRight", "embedding + position"), ("ArrowRight", "layer 0: the stream + what attention")):
        keyboard.press(key)
        expect(focused).to_have_attribute("aria-label", re.compile(re.escape(name)))
        assert tooltip.text_content().replace("\n", ", ").startswith(focused.get_attribute("aria-label"))
        expect(tooltip).to_contain_text("Shift+Enter")
    ring, box = figure.locator(".ring").bounding_box(), focused.locator(".shape").bounding_box()
    assert ring["x"] < box["x"] and ring["x"] + ring["width"] > box["x"] + box["width"]
    assert ring["y"] < box["y"] and ring["y"] + ring["height"] > box["y"] + box["height"]
    keyboard.press("Shift+Enter")
    expect(person.page.locator('[data-of="overview-map"]')).to_contain_text("length of the stream")
    assert person.state["view"] == "overview"
    keyboard.press("Escape")
    expect(focused).to_have_count(0)
    expect(tooltip).to_be_hidden()
    figure.locator(".part.head").nth(6).evaluate("(part) => part.focus()")
    keyboard.press("Enter")
    person.expect_selected(view="attention", layer=1, head=2)


@pytest.mark.exhaustive
def test_the_ring_of_the_focus_stands_out_in_both_themes(page_of_the_map):
    """The ring contrasts with the page and with the component inside."""
    person, figure = page_of_the_map
    head = figure.locator(".part.head").first
    person.page.emulate_media(reduced_motion="reduce")
    for _ in range(2):
        head.evaluate("(part) => part.focus({ focusVisible: true })")
        ring = figure.locator(".ring")
        expect(ring).to_be_visible()
        colours = ring.evaluate("(ring) => getComputedStyle(ring).stroke"), person.background
        channels = [[float(channel) for channel in re.findall(r"[\d.]+", colour)[:3]] for colour in colours]
        assert contrast(*channels) >= 4.5
        with person.redrawn(figure):
            person.change_theme()


@pytest.mark.exhaustive
def test_the_figure_and_its_parts_say_what_they_are(page_of_the_map):
    person, figure = page_of_the_map
    svg = figure.locator("svg")
    expect(svg).to_have_attribute("role", "group")
    expect(svg).to_have_attribute("aria-label", re.compile(r"^Map of 3 layers at “.*”: the stream’s length goes from "))
    expect(svg).to_have_attribute("aria-description", re.compile("Arrow keys .*Enter .*Shift"))
    components = figure.get_by_role("button")
    labels = [components.nth(i).get_attribute("aria-label") for i in range(components.count())]
    assert len(labels) == figure.locator(".part").count() and all(labels)
    assert len(set(labels)) == len(labels)


def touch(person: Person, component: Locator, milliseconds: int):
    """Touch a component of the map with a finger for some milliseconds."""
    x, y = get_centre(component)
    device = person.page.context.new_cdp_session(person.page)
    device.send("Input.dispatchTouchEvent", {"type": "touchStart", "touchPoints": [{"x": x, "y": y}]})
    person.page.wait_for_timeout(milliseconds)
    device.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})


@pytest.mark.exhaustive
def test_a_finger_that_stays_is_told_and_one_that_taps_opens(newcomer, touchscreen):
    person = newcomer(viewport=TELEPHONE, profile=touchscreen).open(view="overview", layer=0, head=0)
    figure = person.page.locator("#overview-map .map")
    expect(figure).to_have_attribute("data-draws", re.compile(r"\d"))
    person.at_rest()
    head = scroll_into_view(figure).locator(".part.head").nth(1)
    touch(person, head, 900)
    hover_box, working = (person.page.locator(name) for name in ("#overview-map .told", '[data-of="overview-map"]'))
    expect(working).to_contain_text("what layer 0 head 1 adds")
    expect(person.page.locator(".first-line")).to_be_in_viewport(ratio=1)
    expect(hover_box).to_contain_text("layer 0 head 1")
    box = hover_box.bounding_box()
    assert box["x"] >= 0 and box["x"] + box["width"] <= TELEPHONE["width"]
    assert person.state["view"] == "overview"
    scroll_into_view(figure)
    person.page.touchscreen.tap(*get_centre(head))
    expect(hover_box).to_be_hidden()
    person.expect_selected(view="attention", layer=0, head=1)
