"""Map of the model by pointer, keyboard and touch: hover texts, selection and navigation."""

import re

import numpy as np
import pytest
from playwright.sync_api import Locator, expect

from explorer.lessons.glossary import ENTRY_BY_NAME

from .map_expectations import TELEPHONE, contrast_ratio, make_accessible_name, open_map, scroll_into_view, wait_for_map
from .person import Person

ARROWS = {"ArrowLeft": (-1, 0), "ArrowRight": (1, 0), "ArrowUp": (0, -1), "ArrowDown": (0, 1)}
# For every component and direction the component that the arrow key leads to, and the components' positions.
ARROW_KEY_TARGETS = """async ([map, directions]) => {
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
def tooltip(map_page) -> Locator:
    return map_page[0].page.locator("#overview-map .told")


@pytest.fixture
def map_page(open_page) -> tuple[Person, Locator]:
    return open_map(open_page, layer=0, head=0, query=9)


def get_centre(component: Locator) -> tuple[float, float]:
    box = component.locator(".shape").bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


@pytest.mark.exhaustive
def test_hover_text_is_near_pointer_and_within_figure(map_page, tooltip):
    person, figure = map_page
    components, whole = figure.locator(".part"), figure.bounding_box()
    for i in range(components.count()):
        component = components.nth(i)
        x, y = get_centre(component)
        person.page.mouse.move(x, y)
        expect(tooltip).to_be_visible()
        lines = tooltip.text_content().strip()
        assert component.get_attribute("aria-label") == make_accessible_name(
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
def test_hover_text_follows_selection(map_page, tooltip):
    """The hover text changes even if the pointer does not move."""
    person, figure = map_page
    head = figure.locator(".part.head").nth(5)
    person.page.mouse.move(*get_centre(head))
    before = tooltip.text_content()
    with person.wait_for_redraw(figure):
        person.evaluate("actions.select({ query: 4 })")
    assert tooltip.text_content().strip().replace("\n", ", ") == head.get_attribute("aria-label") != before


# One component of each kind: its index within the kind, what a click opens and selects, and its derivation
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
def test_click_opens_component_and_shift_click_derives_it(map_page):
    person, figure = map_page
    working = person.page.locator('[data-of="overview-map"]')
    for kind, (i, selects, derivation_text) in CLICKS.items():
        component = figure.locator(f".part.{kind}").nth(i)
        person.evaluate("actions.select({ layer: 0, head: 0, target: 1 })")
        person.wait_until_idle()
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


def test_map_and_tabs_work_while_queue_is_blocked(open_page):
    person = open_page("overview", layer=0, head=0, query=9, unfolded="overview-map")
    figure = wait_for_map(person)
    person.page.route("**/gradio_api/queue/**", lambda route: None)
    person.page.mouse.click(*get_centre(figure.locator(".part.norm").first))
    expect(person.page.get_by_role("tab", name="Residual stream")).to_have_attribute("aria-selected", "true")
    person.visit("overview", "Whole model")
    expect(figure).to_be_visible()


def test_arrow_keys_reach_nearest_component_and_all(map_page):
    person, figure = map_page
    assert figure.evaluate(STOPS) == 1
    reached_by_keys = person.page.evaluate(ARROW_KEY_TARGETS, [figure.element_handle(), list(ARROWS.values())])
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


def test_keyboard_opens_explains_and_leaves_components(map_page, tooltip):
    person, figure = map_page
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
def test_focus_ring_has_contrast_in_both_themes(map_page):
    """The ring contrasts with the page and with the component inside."""
    person, figure = map_page
    head = figure.locator(".part.head").first
    person.page.emulate_media(reduced_motion="reduce")
    for _ in range(2):
        head.evaluate("(part) => part.focus({ focusVisible: true })")
        ring = figure.locator(".ring")
        expect(ring).to_be_visible()
        colours = ring.evaluate("(ring) => getComputedStyle(ring).stroke"), person.background
        channels = [[float(channel) for channel in re.findall(r"[\d.]+", colour)[:3]] for colour in colours]
        assert contrast_ratio(*channels) >= 4.5
        with person.wait_for_redraw(figure):
            person.change_theme()


@pytest.mark.exhaustive
def test_map_and_components_have_accessible_names(map_page):
    person, figure = map_page
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
def test_long_touch_explains_and_tap_opens_component(open_new_page, touchscreen):
    person = open_new_page(viewport=TELEPHONE, profile=touchscreen).open(view="overview", layer=0, head=0)
    figure = person.page.locator("#overview-map .map")
    expect(figure).to_have_attribute("data-draws", re.compile(r"\d"))
    person.wait_until_idle()
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
    person.wait_for_terms()
    person.page.locator("#strip .chip .mark").first.tap()  # the mark of a space, which shows its title only to a mouse
    expect(person.page.locator("#definition")).to_contain_text(ENTRY_BY_NAME["·"].meaning)
