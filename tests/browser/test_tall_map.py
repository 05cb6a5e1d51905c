"""The map of the model on a telephone, as it is painted: from top to bottom, and within the screen."""

import re

import pytest
from playwright.sync_api import Locator, expect

from explorer.views.overview.plan import Plan
from explorer.views.overview.tall import Tall
from explorer.views.overview.wide import Wide
from tests.exhaustive import first_of

from .conftest import DESK
from .drawn_map import TELEPHONE, in_sight, map_of, opened
from .painted import run_on_show
from .person import Person

# Of all parts their kinds, labels and edges in the pixels of the sheet.
PAINTED = """(map) => {
  const svg = map.querySelector("svg"), { a: scale, e: left, f: top } = svg.getScreenCTM();
  return [...map.querySelectorAll(".part")].map((part) => {
    const box = part.firstChild.getBoundingClientRect();
    return {
      kind: part.classList[1], label: part.getAttribute("aria-label"),
      box: [box.left - left, box.top - top, box.right - left, box.bottom - top].map((edge) => edge / scale),
    };
  });
}"""
# How wide things are and what there is room for, on the screen; and the smallest font there.
WIDTHS = """(map) => {
  const page = document.documentElement, scale = map.querySelector("svg").getScreenCTM().a;
  const fonts = [...map.querySelectorAll("svg text")].filter((text) => text.textContent);
  return {
    map: [map.scrollWidth, map.clientWidth], page: [page.scrollWidth, page.clientWidth],
    least: scale * Math.min(...fonts.map((text) => parseFloat(getComputedStyle(text).fontSize))),
    sheet: map.querySelector(".sheet").getBoundingClientRect().toJSON(), more: map.dataset.more,
  };
}"""

# Once a title does not say that what is below it is wider than its place: a picture that was is drawn anew first.
IS_WHOLE = (
    """(title) => !getComputedStyle(document.querySelector(title), "::after").content.includes("scrolls sideways")"""
)


def assert_painted(picture: Locator, plan: Plan):
    """Every head, every feed-forward and all that is there once is where the plan has it."""
    parts = picture.evaluate(PAINTED)
    places = {"embedding of": plan.box(plan.token, plan.beside_stream)}
    places["lm_head"] = plan.box((plan.after("lm_head"), plan.after("lm_head_end")), plan.lm_head)
    for layer in range(plan.config.num_layers):
        places |= {f"layer {layer} head {head}, ": plan.head(layer, head) for head in range(plan.config.num_heads)}
        places[f"layer {layer} o_proj"] = plan.box(plan.span(layer, "o_proj"), plan.o_proj)
        places[f"layer {layer} feed-forward"] = plan.box(plan.span(layer, "feed_forward"), plan.feed_forward)
        for sublayer, name in (("attn", "attention"), ("ffn", "feed-forward")):
            added = plan.disc(plan.place(layer, f"add_{sublayer}"), plan.stream)
            places[f"layer {layer}: the stream + what {name}"] = added
            places[f"layer {layer} {sublayer}_norm"] = plan.disc(*plan.norm(layer, f"{sublayer}_norm"))
    for says, box in places.items():
        (part,) = (part for part in parts if part["label"].startswith(says))
        assert part["box"] == pytest.approx(box, abs=0.1), says
    listed = [part["box"] for part in parts if part["kind"] == "next_token"]
    for row, box in enumerate(listed):
        assert box == pytest.approx(plan.next_token(row), abs=0.1)


@pytest.mark.parametrize("checkpoint", first_of(["gpt-twin", "tiny"]))
def test_on_a_telephone_the_data_runs_down_and_nothing_is_beyond_the_screen(visitor, checkpoint):
    person, picture = opened(visitor, checkpoint, viewport=TELEPHONE)
    config = run_on_show(person).config
    assert_painted(picture, Tall(config, 5))
    boxes = {part["label"]: part["box"] for part in picture.evaluate(PAINTED)}
    of_layer = [
        [box for label, box in boxes.items() if label.startswith(f"layer {i}")] for i in range(config.num_layers)
    ]
    for above, below in zip(of_layer, of_layer[1:], strict=False):
        assert max(lower for *_, lower in above) <= min(upper for _, upper, *_ in below)
    seen = picture.evaluate(WIDTHS)
    for all_of_it, shown in (seen["map"], seen["page"]):
        assert all_of_it <= shown
    assert seen["least"] >= 11 and seen["more"] == ""
    width, height = Tall(config, 5).size
    assert seen["sheet"]["height"] / seen["sheet"]["width"] == pytest.approx(height / width, rel=0.002)
    for panel in ("map", "sum"):
        person.page.wait_for_function(IS_WHOLE, arg=f"#overview-{panel} h2")


@pytest.mark.exhaustive
def test_on_a_telephone_the_running_sum_is_all_in_sight(visitor):
    person, _picture = opened(visitor, viewport=TELEPHONE)
    plot = person.page.locator("#overview-sum .plot")
    plot.scroll_into_view_if_needed()
    expect(plot).to_have_attribute("data-draws", re.compile(r"\d"))
    bars = plot.locator(".barlayer .point path").evaluate_all(
        "(nodes) => nodes.map((node) => node.getBoundingClientRect()).map(({ left, right }) => [left, right])"
    )
    assert min(right - left for left, right in bars) >= 3
    assert min(left for left, _ in bars) >= 0 and max(right for _, right in bars) <= TELEPHONE["width"]


@pytest.mark.exhaustive
def test_a_tap_opens_the_head_that_it_is_on(newcomer, touchscreen):
    place = {"view": "overview", "checkpoint": "gpt-twin", "layer": 0, "head": 0}
    person = newcomer(viewport=TELEPHONE, profile=touchscreen).open(**place)
    picture = map_of(person)
    plan = Tall(run_on_show(person).config, 5)
    for layer, head in ((2, 1), (0, 3), (1, 2)):
        x, y = on_screen(in_sight(picture), plan.head(layer, head))
        person.page.evaluate("(up) => scrollBy(0, up)", y - TELEPHONE["height"] / 3)
        person.page.touchscreen.tap(*on_screen(picture, plan.head(layer, head)))
        person.expect_selected(view="attention", layer=layer, head=head)
        person.tab("Overview")
        person.at_rest()


def on_screen(picture: Locator, box: tuple[float, float, float, float]) -> tuple[float, float]:
    """The middle of a box of the sheet."""
    left, upper, right, lower = box
    point = picture.evaluate(
        "(map, [x, y]) => new DOMPoint(x, y).matrixTransform(map.querySelector('svg').getScreenCTM()).toJSON()",
        [(left + right) / 2, (upper + lower) / 2],
    )
    return point["x"], point["y"]


@pytest.mark.exhaustive
def test_a_page_that_becomes_wider_has_the_wide_map_and_back(visitor):
    """With what was chosen framed where it is now, and nothing asked of Python."""
    person, picture = opened(visitor, viewport=TELEPHONE, layer=2, head=1)
    config, asked = run_on_show(person).config, []
    person.page.on("request", lambda request: asked.append(f"{request.url} {request.post_data}"))
    for viewport, kind in ((DESK, Wide), (TELEPHONE, Tall), (DESK, Wide)):
        with person.redrawn(picture):
            person.page.set_viewport_size(viewport)
        plan = kind(config, 5)
        assert_painted(picture, plan)
        expect(picture.locator("svg")).to_have_attribute("viewBox", "0 0 {:g} {:g}".format(*plan.size))
        assert_framed(person, picture, plan)
    assert [each for each in asked if "component_server" in each and "people_before" not in each] == []


def assert_framed(person: Person, picture: Locator, plan: Plan):
    left, upper, right, lower = plan.head(person.state["layer"], person.state["head"])
    frame = picture.locator(".frame.head")
    edges = [float(frame.get_attribute(name)) for name in ("x", "y", "width", "height")]
    assert edges == pytest.approx([left, upper, right - left, lower - upper], abs=0.011)
