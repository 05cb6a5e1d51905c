"""Map of the model on a phone as painted: from top to bottom, and within the screen."""

import re
from itertools import combinations

import pytest
from playwright.sync_api import Locator, expect

from explorer.views.overview.map_layout import LandscapeLayout, MapLayout, PortraitLayout

from .conftest import DESK
from .map_expectations import TELEPHONE, open_map
from .person import Person
from .pixels import capture_visible_run

# Kinds, labels and edges of all components, in pixels of the drawing.
PAINTED_COMPONENTS = """(map) => {
  const svg = map.querySelector("svg"), { a: scale, e: left, f: top } = svg.getScreenCTM();
  return [...map.querySelectorAll(".part")].map((part) => {
    const box = part.firstChild.getBoundingClientRect();
    return {
      kind: part.classList[1], label: part.getAttribute("aria-label"),
      box: [box.left - left, box.top - top, box.right - left, box.bottom - top].map((edge) => edge / scale),
    };
  });
}"""
# Sizes of the map and the page, available and needed, on the screen; and the smallest font there.
WIDTHS = """(map) => {
  const page = document.documentElement, scale = map.querySelector("svg").getScreenCTM().a;
  const fonts = [...map.querySelectorAll("svg text")].filter((text) => text.textContent);
  return {
    map: [map.scrollWidth, map.clientWidth], page: [page.scrollWidth, page.clientWidth],
    least: scale * Math.min(...fonts.map((text) => parseFloat(getComputedStyle(text).fontSize))),
    sheet: map.querySelector(".sheet").getBoundingClientRect().toJSON(), more: map.dataset.more,
  };
}"""

# Whether a title no longer says that its figure scrolls: a figure that was too wide is drawn again first.
HAS_NO_SCROLL_HINT = (
    """(title) => !getComputedStyle(document.querySelector(title), "::after").content.includes("scrolls sideways")"""
)


def assert_painted(figure: Locator, plan: MapLayout):
    """Assert that all heads, feed-forward layers and single components are where the layout has them."""
    components = figure.evaluate(PAINTED_COMPONENTS)
    expected_boxes = {"embedding of": plan.box(plan.token, plan.beside_stream)}
    expected_boxes["lm_head"] = plan.box(
        (plan.offset_after_blocks("lm_head"), plan.offset_after_blocks("lm_head_end")), plan.lm_head
    )
    for layer in range(plan.config.num_layers):
        expected_boxes |= {
            f"layer {layer} head {head}, ": plan.head(layer, head) for head in range(plan.config.num_heads)
        }
        expected_boxes[f"layer {layer} o_proj"] = plan.box(plan.span(layer, "o_proj"), plan.o_proj)
        expected_boxes[f"layer {layer} feed-forward"] = plan.box(plan.span(layer, "feed_forward"), plan.feed_forward)
        for sublayer, name in (("attn", "attention"), ("ffn", "feed-forward")):
            added = plan.disc(plan.offset(layer, f"add_{sublayer}"), plan.stream)
            expected_boxes[f"layer {layer}: the stream + what {name}"] = added
            expected_boxes[f"layer {layer} {sublayer}_norm"] = plan.disc(*plan.norm(layer, f"{sublayer}_norm"))
    for label_start, box in expected_boxes.items():
        (component,) = (component for component in components if component["label"].startswith(label_start))
        assert component["box"] == pytest.approx(box, abs=0.1), label_start
    listed = [component["box"] for component in components if component["kind"] == "next_token"]
    for row, box in enumerate(listed):
        assert box == pytest.approx(plan.next_token(row), abs=0.1)


def test_phone_map_runs_down_and_fits_screen(open_page):
    person, figure = open_map(open_page, viewport=TELEPHONE)
    config = capture_visible_run(person).config
    assert_painted(figure, PortraitLayout(config, 5))
    boxes = {component["label"]: component["box"] for component in figure.evaluate(PAINTED_COMPONENTS)}
    of_layer = [
        [box for label, box in boxes.items() if label.startswith(f"layer {i}")] for i in range(config.num_layers)
    ]
    for above, below in zip(of_layer, of_layer[1:], strict=False):
        assert max(lower for *_, lower in above) <= min(upper for _, upper, *_ in below)
    widths = figure.evaluate(WIDTHS)
    for all_of_it, visible_size in (widths["map"], widths["page"]):
        assert all_of_it <= visible_size
    assert widths["least"] >= 11 and widths["more"] == ""
    width, height = PortraitLayout(config, 5).size
    assert widths["sheet"]["height"] / widths["sheet"]["width"] == pytest.approx(height / width, rel=0.002)
    for panel in ("map", "sum"):
        person.page.wait_for_function(HAS_NO_SCROLL_HINT, arg=f"#overview-{panel} h2")


@pytest.mark.exhaustive
def test_running_sum_fits_phone(open_page):
    person = open_page("overview", checkpoint="gpt-twin", unfolded="overview-sum", viewport=TELEPHONE)
    plot = person.page.locator("#overview-sum .plot")
    plot.scroll_into_view_if_needed()
    expect(plot).to_have_attribute("data-draws", re.compile(r"\d"))
    bars = plot.locator(".barlayer .point path").evaluate_all(
        "(nodes) => nodes.map((node) => node.getBoundingClientRect()).map(({ left, right }) => [left, right])"
    )
    assert min(right - left for left, right in bars) >= 3
    assert min(left for left, _ in bars) >= 0 and max(right for _, right in bars) <= TELEPHONE["width"]
    numbers = plot.locator(".scatterlayer text").evaluate_all(
        """(nodes) => nodes.filter((node) => getComputedStyle(node).visibility === "visible")
          .map((node) => node.getBoundingClientRect())
          .map(({ left, right, top, bottom }) => [left, right, top, bottom])"""
    )
    assert len(numbers) > len(bars) / 3 and min(left for left, *_ in numbers) >= 0
    for one, other in combinations(numbers, 2):
        assert one[1] < other[0] or other[1] < one[0] or one[3] < other[2] or other[3] < one[2]


@pytest.mark.exhaustive
def test_map_layout_follows_page_width(open_page):
    """Selected components stay framed, and no request is sent to Python."""
    person, figure = open_map(open_page, viewport=TELEPHONE, layer=2, head=1)
    config, requests = capture_visible_run(person).config, []
    person.page.on("request", lambda request: requests.append(f"{request.url} {request.post_data}"))
    for viewport, kind in ((DESK, LandscapeLayout), (TELEPHONE, PortraitLayout), (DESK, LandscapeLayout)):
        with person.wait_for_redraw(figure):
            person.page.set_viewport_size(viewport)
        plan = kind(config, 5)
        assert_painted(figure, plan)
        expect(figure.locator("svg")).to_have_attribute("viewBox", "0 0 {:g} {:g}".format(*plan.size))
        assert_framed(person, figure, plan)
    assert [request_text for request_text in requests if "/explorer/" in request_text] == []


def assert_framed(person: Person, figure: Locator, plan: MapLayout):
    left, upper, right, lower = plan.head(person.state["layer"], person.state["head"])
    frame = figure.locator(".frame.head")
    edges = [float(frame.get_attribute(name)) for name in ("x", "y", "width", "height")]
    assert edges == pytest.approx([left, upper, right - left, lower - upper], abs=0.011)
