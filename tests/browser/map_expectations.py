"""Map of the model as the browser draws it (boxes, texts, lines, frames), and its expected content."""

import re
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from playwright.sync_api import Locator, expect

from explorer.analysis.direct_logit_attribution import (
    ForwardPassOverview,
    forward_pass_overview,
)
from explorer.analysis.next_token import ranking_without_interventions
from explorer.analysis.residual import residual_stages
from explorer.tracing.trace import Trace
from explorer.views.overview.map_layout import MapLayout

from .person import Person
from .pixels import capture_visible_run

TELEPHONE = {"width": 390, "height": 844}


TALL = {"width": 390, "height": 2400}


SELECTED_FIELDS = {"layer": 2, "head": 1, "query": 9, "key": 4, "target": 2, "rival": 7}


# Boxes at points of the layout: index, label, fill and text colour, text, position on the screen.
BOXES_AT = """(map, places) => places.map(([x, y]) => {
  const { x: left, y: top } = new DOMPoint(x, y).matrixTransform(map.querySelector("svg").getScreenCTM());
  const part = document.elementFromPoint(left, top).closest(".part"), [shape, , text] = part.children;
  const channels = (colour) => colour.match(/[\\d.]+/g).slice(0, 3).map(Number);
  return {
    item: [...map.querySelectorAll(".part")].indexOf(part), label: part.getAttribute("aria-label"),
    fill: channels(getComputedStyle(shape).fill), ink: channels(getComputedStyle(text).fill), text: text.textContent,
    x: left, y: top,
  };
})"""


MAP_LINES = """(map) => [...map.querySelectorAll(".lines > g")].map((line) => {
  const { strokeWidth, stroke } = getComputedStyle(line.firstChild), kind = line.getAttribute("class");
  const [d, arrow] = [...line.children].map((path) => path.getAttribute("d"));
  const corners = d.match(/[\\d.]+/g).map(Number);
  return { kind, width: parseFloat(strokeWidth), corners, arrow: Boolean(arrow), stroke };
})"""


# Texts as [text, left, top, right, bottom]; boxes of components, and of the whole map, as the last four.
MAP_TEXTS = """(map) => {
  const edges = (node) => (({ left, top, right, bottom }) => [left, top, right, bottom])(node.getBoundingClientRect());
  const texts = [...map.querySelectorAll(".words text, .part tspan")].filter((node) => node.textContent.trim());
  const free = [...map.querySelectorAll(".words text")].filter((node) => !node.classList.contains("token"));
  const boxes = [...map.querySelectorAll(".part:not(.next_token) > .shape")];
  return {
    texts: texts.map((node) => [node.textContent, ...edges(node)]),
    free: free.map((node) => [node.textContent, ...edges(node)]),
    parts: boxes.map(edges), sheet: edges(map.querySelector("svg")),
  };
}"""


LONGEST_TRANSITION = """(map) => Math.max(...[...map.querySelectorAll("*")].flatMap((node) => {
  const { transitionProperty, transitionDuration } = getComputedStyle(node);
  return transitionProperty === "none" ? 0 : transitionDuration.split(",").map(parseFloat);
}))"""


# Right after a selection: the frames by name, and the components marked as current.
FRAMES_AFTER_CHOICE = """((map, choice) => {
  if (choice) actions.select(choice);
  const frames = [...map.querySelectorAll(".frame")].filter((frame) => frame.checkVisibility());
  const edges = (frame) => ["x", "y", "width", "height"].map((name) => +frame.getAttribute(name));
  return [
    Object.fromEntries(frames.map((frame) => [frame.classList[1], edges(frame)])),
    [...map.querySelectorAll("[aria-current]")].map((part) => part.getAttribute("aria-label")),
  ];
})(document.querySelector("#overview-map .map"), given)"""


class ExpectedBox(NamedTuple):
    """Expected box of the map: position, start of its label, numbers in it, and colour value (None: no colour)."""

    position: tuple[float, float]
    label_start: str
    numbers: list[float]
    colour_value: float | None = None


def make_accessible_name(hover_text: str, text: str) -> str:
    """Return a box's accessible name: its hover text, plus its visible text if the hover text lacks it."""
    name, visible_text = hover_text.replace("\n", ", "), text.replace("\n", " ")
    return name if visible_text in name else f"{name} ({visible_text})"


def expected_boxes(
    trace: Trace, model_overview: ForwardPassOverview, query: int, plan: MapLayout
) -> Iterator[ExpectedBox]:
    """Yield every box but the next tokens, from the layout and the arrays."""
    contributions, post = model_overview.attribution, trace.config.norm_placement == "post"
    stream = {stage.tap: length for stage, length in zip(residual_stages(trace), model_overview.stream, strict=True)}

    def middle(along, across) -> tuple[float, float]:
        return plan.to_xy(float(np.mean(along)), float(np.mean(across)))

    yield ExpectedBox(
        middle(plan.token, plan.beside_stream), "embedding of ", [model_overview.token, contributions.token]
    )
    if "position_embed" in trace:
        position = middle(plan.token, plan.position)
        yield ExpectedBox(position, f"vector of position {query}", [model_overview.positions, contributions.positions])
        yield ExpectedBox(middle(plan.position_added, plan.stream), "embedding + position", [model_overview.stream[0]])
    for layer in range(trace.config.num_layers):
        for head in range(trace.config.num_heads):
            left, upper, right, lower = plan.head(layer, head)
            numbers = [model_overview.head_write_norms[layer, head], contributions.heads[layer, head]]
            position = left + 0.8 * (right - left), (upper + lower) / 2
            yield ExpectedBox(position, f"layer {layer} head {head}, ", numbers, contributions.heads[layer, head])
        if trace.config.has_rope(layer):
            position = middle(plan.heads_centre(layer), plan.rotary)
            yield ExpectedBox(position, f"layer {layer}: every head’s q and k are rotated", [])
        position = middle(plan.offset(layer, "add_attn"), plan.o_proj)
        yield ExpectedBox(
            position,
            f"layer {layer} o_proj",
            [model_overview.write_norms[layer, 0], model_overview.logit_effects[layer, 0]],
        )
        position = middle(plan.span(layer, "feed_forward"), plan.feed_forward)
        numbers = [model_overview.write_norms[layer, 1], model_overview.logit_effects[layer, 1]]
        yield ExpectedBox(position, f"layer {layer} feed-forward", numbers, model_overview.logit_effects[layer, 1])
        for sublayer, name, end in (("attn", "attention", "mid"), ("ffn", "feed-forward", "post")):
            norm = f"{sublayer}_norm"
            yield ExpectedBox(
                middle(*plan.norm(layer, norm)),
                f"layer {layer} {norm}",
                [model_overview.divisors[f"blocks.{layer}.{norm}"]],
            )
            after = stream[f"blocks.{layer}.resid_{end}"]
            position = middle(plan.offset(layer, f"add_{sublayer}"), plan.stream)
            yield ExpectedBox(position, f"layer {layer}: the stream + what {name} writes", [after])
    if not post:
        yield ExpectedBox(
            middle(plan.offset_after_blocks("final_norm"), plan.stream),
            "final_norm",
            [model_overview.divisors["final_norm"]],
        )
    position = middle((plan.offset_after_blocks("lm_head"), plan.offset_after_blocks("lm_head_end")), plan.lm_head)
    yield ExpectedBox(position, "lm_head", [contributions.logit])


def open_map(visit, checkpoint: str = "gpt-twin", **fields) -> tuple[Person, Locator]:
    """Open the map, scrolled to the middle of the screen; by default of a model with 3 layers of 4 heads."""
    person = visit("overview", checkpoint=checkpoint, unfolded="overview-map", **fields)
    return person, wait_for_map(person)


def wait_for_map(person: Person) -> Locator:
    """Wait until the map of the open Overview tab is drawn, and scroll it to the middle of the screen."""
    figure = person.page.locator("#overview-map .map")
    expect(figure).to_have_attribute("data-draws", re.compile(r"\d"))
    person.wait_until_idle()
    return scroll_into_view(figure)


def scroll_into_view(figure: Locator) -> Locator:
    figure.evaluate("(map) => map.scrollIntoView({ block: 'center' })")
    return figure


def map_numbers(person: Person) -> tuple[Trace, ForwardPassOverview, list[int]]:
    """Return the visible run, the overview that the map shows, and the next tokens by rank."""
    trace, state = capture_visible_run(person), person.state
    order = ranking_without_interventions(trace, state["query"])
    contrast_id = int(order[state["rival"] - 1]) if state["rival"] else None
    return trace, forward_pass_overview(trace, state["query"], int(order[state["target"] - 1]), contrast_id), order


def contrast_ratio(*colours: list[float]) -> float:
    def luminance(rgb) -> float:
        share = np.asarray(rgb) / 255
        return float(
            np.where(share <= 0.04045, share / 12.92, ((share + 0.055) / 1.055) ** 2.4) @ (0.2126, 0.7152, 0.0722)
        )

    dark, light = sorted(map(luminance, colours))
    return (light + 0.05) / (dark + 0.05)
