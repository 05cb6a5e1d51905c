"""The map as a person sees it: its parts, words, lines and frames, and what they are to be."""

import re
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from playwright.sync_api import Locator, expect

from explorer.analysis.next_token import ranking
from explorer.analysis.overview import Overview, overview
from explorer.analysis.residual import stages
from explorer.tracing.trace import Trace
from explorer.views.overview.plan import Plan

from .painted import run_on_show
from .person import Person

TELEPHONE = {"width": 390, "height": 844}


TALL = {"width": 390, "height": 2400}


CHOSEN = {"layer": 2, "head": 1, "query": 9, "key": 4, "target": 2, "rival": 7}


# What is at places of the plan: which part, how it is filled, what it says, how its text is coloured.
FOUND = """(map, places) => places.map(([x, y]) => {
  const { x: left, y: top } = new DOMPoint(x, y).matrixTransform(map.querySelector("svg").getScreenCTM());
  const part = document.elementFromPoint(left, top).closest(".part"), [shape, , text] = part.children;
  const channels = (colour) => colour.match(/[\\d.]+/g).slice(0, 3).map(Number);
  return {
    item: [...map.querySelectorAll(".part")].indexOf(part), label: part.getAttribute("aria-label"),
    fill: channels(getComputedStyle(shape).fill), ink: channels(getComputedStyle(text).fill), text: text.textContent,
    x: left, y: top,
  };
})"""


LINES = """(map) => [...map.querySelectorAll(".lines > g")].map((line) => {
  const { strokeWidth, stroke } = getComputedStyle(line.firstChild), kind = line.getAttribute("class");
  const [d, arrow] = [...line.children].map((path) => path.getAttribute("d"));
  const corners = d.match(/[\\d.]+/g).map(Number);
  return { kind, width: parseFloat(strokeWidth), corners, arrow: Boolean(arrow), stroke };
})"""


# Words and what they stand on: texts as [text, left, top, right, bottom], parts as the last four.
WORDS = """(map) => {
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


MOVING = """(map) => Math.max(...[...map.querySelectorAll("*")].flatMap((node) => {
  const { transitionProperty, transitionDuration } = getComputedStyle(node);
  return transitionProperty === "none" ? 0 : transitionDuration.split(",").map(parseFloat);
}))"""


# After a choice, before anything else can happen: the frames by their names, and the parts that are said to be chosen.
FRAMED = """((map, choice) => {
  if (choice) choosing.pick(choice);
  const frames = [...map.querySelectorAll(".frame")].filter((frame) => frame.checkVisibility());
  const edges = (frame) => ["x", "y", "width", "height"].map((name) => +frame.getAttribute(name));
  return [
    Object.fromEntries(frames.map((frame) => [frame.classList[1], edges(frame)])),
    [...map.querySelectorAll("[aria-current]")].map((part) => part.getAttribute("aria-label")),
  ];
})(document.querySelector("#overview-map .map"), given)"""


class Expected(NamedTuple):
    """A part at its place: what it says first, the numbers that it tells, and its colour's value where it has one."""

    place: tuple[float, float]
    says: str
    tells: list[float]
    adds: float | None = None


def name_of(told: str, written: str) -> str:
    """What a part is called: what is told of it and, where that leaves it out, what is written on it."""
    name, seen = told.replace("\n", ", "), written.replace("\n", " ")
    return name if seen in name else f"{name} ({seen})"


def parts_of(trace: Trace, found: Overview, query: int, plan: Plan) -> Iterator[Expected]:
    """Every part but the next tokens, from the plan and the arrays."""
    taken, post = found.parts, trace.config.norm_placement == "post"
    stream = {stage.tap: length for stage, length in zip(stages(trace), found.stream, strict=True)}

    def middle(along, across) -> tuple[float, float]:
        return plan.spot(float(np.mean(along)), float(np.mean(across)))

    yield Expected(middle(plan.token, plan.beside_stream), "embedding of ", [found.token, taken.token])
    if "position_embed" in trace:
        place = middle(plan.token, plan.position)
        yield Expected(place, f"vector of position {query}", [found.positions, taken.positions])
        yield Expected(middle(plan.position_added, plan.stream), "embedding + position", [found.stream[0]])
    for layer in range(trace.config.num_layers):
        for head in range(trace.config.num_heads):
            left, upper, right, lower = plan.head(layer, head)
            numbers = [found.head_writes[layer, head], taken.heads[layer, head]]
            place = left + 0.8 * (right - left), (upper + lower) / 2
            yield Expected(place, f"layer {layer} head {head}, ", numbers, taken.heads[layer, head])
        if trace.config.rotates(layer):
            place = middle(plan.middle(layer), plan.rotary)
            yield Expected(place, f"layer {layer}: every head’s q and k are turned", [])
        place = middle(plan.place(layer, "add_attn"), plan.o_proj)
        yield Expected(place, f"layer {layer} o_proj", [found.writes[layer, 0], found.adds[layer, 0]])
        place = middle(plan.span(layer, "feed_forward"), plan.feed_forward)
        numbers = [found.writes[layer, 1], found.adds[layer, 1]]
        yield Expected(place, f"layer {layer} feed-forward", numbers, found.adds[layer, 1])
        for sublayer, name, end in (("attn", "attention", "mid"), ("ffn", "feed-forward", "post")):
            norm = f"{sublayer}_norm"
            yield Expected(
                middle(*plan.norm(layer, norm)), f"layer {layer} {norm}", [found.divisors[f"blocks.{layer}.{norm}"]]
            )
            after = stream[f"blocks.{layer}.resid_{end}"]
            place = middle(plan.place(layer, f"add_{sublayer}"), plan.stream)
            yield Expected(place, f"layer {layer}: the stream + what {name} writes", [after])
    if not post:
        yield Expected(middle(plan.after("final_norm"), plan.stream), "final_norm", [found.divisors["final_norm"]])
    place = middle((plan.after("lm_head"), plan.after("lm_head_end")), plan.lm_head)
    yield Expected(place, "lm_head", [taken.logit])


def opened(visitor, checkpoint: str = "gpt-twin", **place) -> tuple[Person, Locator]:
    """The map, in the middle of the screen; if not said otherwise of a model of 3 layers of 4 heads."""
    person = visitor("overview", checkpoint=checkpoint, **place)
    return person, map_of(person)


def map_of(person: Person) -> Locator:
    """Of the open overview, in the middle of the screen."""
    picture = person.page.locator("#overview-map .map")
    expect(picture).to_have_attribute("data-draws", re.compile(r"\d"))
    person.at_rest()
    return in_sight(picture)


def in_sight(picture: Locator) -> Locator:
    picture.evaluate("(map) => map.scrollIntoView({ block: 'center' })")
    return picture


def numbers_on(person: Person) -> tuple[Trace, Overview, list[int]]:
    """The run on show, what the map shows of it, and the next tokens by rank."""
    trace, state = run_on_show(person), person.state
    order = ranking(trace, state["query"])
    rival = int(order[state["rival"] - 1]) if state["rival"] else None
    return trace, overview(trace, state["query"], int(order[state["target"] - 1]), rival), order


def contrast(*colours: list[float]) -> float:
    def luminance(rgb) -> float:
        share = np.asarray(rgb) / 255
        return float(
            np.where(share <= 0.04045, share / 12.92, ((share + 0.055) / 1.055) ** 2.4) @ (0.2126, 0.7152, 0.0722)
        )

    dark, light = sorted(map(luminance, colours))
    return (light + 0.05) / (dark + 0.05)
