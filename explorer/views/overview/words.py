"""The words and numbers on the map of a model."""

from collections.abc import Iterator, Sequence

import numpy as np

from explorer.analysis.overview import Overview
from explorer.explain.notation import added, number
from explorer.language import N_, _, look_up
from explorer.views.overview import tall, wide
from explorer.views.overview.diagram import Word
from explorer.views.overview.next_tokens import NextToken
from explorer.views.overview.plan import Box, Plan
from explorer.views.overview.tall import Tall
from explorer.views.overview.wide import Wide
from explorer.views.style import shortened

DISCS = {"norm": N_("norm"), "addition": N_("addition"), "rotation": N_("rotation")}  # as shown


def of_next_tokens(plan: Plan, listed: Sequence[NextToken], longest: int) -> Iterator[Word]:
    """The next tokens, cut to so many characters, with their probabilities."""
    boxes = [plan.next_token(row) for row in range(len(listed))]
    for next_token, (left, upper, right, lower) in zip(listed, boxes, strict=True):
        height = (upper + lower) / 2 - 3
        yield Word(left + 3, height, shortened(next_token.token, longest), "token", "start")
        yield Word(right - 3, height, number(next_token.probability), "number", "end")
    yield Word(boxes[0][2], boxes[0][1] - 10, _("model’s probability"), "heading", "end")


def beside_rows(plan: Wide, found: Overview, adds: str) -> Iterator[Word]:
    """Of layers and rows; where there is room what each sublayer adds and writes, and the stream's length.

    Args:
        adds: what contributions are called.
    """
    layers, before = range(plan.config.num_layers), plan.start - 4
    if not plan.roomy:
        yield Word(before, wide.TITLES, _("layer"), "title", "end")
    for layer in layers:
        yield Word(plan.middle(layer), wide.TITLES, plan.title(layer), "title")
    yield Word(before, float(np.mean(plan.heads)), _("attention"), "title", "end")
    yield Word(before, float(np.mean(plan.feed_forward)), _("feed-forward"), "title", "end")
    if plan.config.position == "rope":
        yield Word(before, plan.rotary, _("rotary angles"), side="end")
    if not plan.numbered:
        return
    for height, name, values, kind in (
        (wide.ATTENTION_ADDS, adds, (signed(value, plan.roomy) for value in found.adds[:, 0]), "sum"),
        (wide.ATTENTION_WRITES, _("length it writes"), map(number, found.writes[:, 0]), "number"),
        (wide.FEED_FORWARD_ADDS, adds, (signed(value, plan.roomy) for value in found.adds[:, 1]), "sum"),
        (wide.FEED_FORWARD_WRITES, _("length it writes"), map(number, found.writes[:, 1]), "number"),
    ):
        yield Word(before, height, name, "heading", "end")
        for layer, value in enumerate(values):
            yield Word(plan.middle(layer), height, value, kind)
    yield Word(plan.token[0], wide.STREAM_LENGTHS, _("length ‖x‖₂"), "heading", "start")
    for layer, length in enumerate(between_blocks(plan, found)):
        yield Word(plan.at(layer, 0) + 6, wide.STREAM_LENGTHS, number(length), "number", "end")


def beside_blocks(plan: Tall, found: Overview) -> Iterator[Word]:
    """The same, in each block for itself."""
    (left, right), after_stream = plan.heads, plan.stream + plan.thickest / 2 + 5
    if plan.config.position == "rope":
        yield Word(tall.LEFT, plan.start - 8, _("rotary angles"), side="start")
    for layer in range(plan.config.num_layers):
        yield Word(left, plan.at(layer, 0) + tall.TITLE, _("layer {layer}", layer=layer), "title", "start")
        yield Word(tall.ATTENTION, plan.at(layer, 0) + tall.TITLE, _("attention"), side="end")
        for x, height, sublayer in (
            (right, plan.span(layer, "heads")[1] + tall.WORDS, 0),
            (tall.RIGHT, plan.span(layer, "feed_forward")[0] - tall.WORDS - tall.LINE, 1),
        ):
            adds, writes = signed(found.adds[layer, sublayer]), number(found.writes[layer, sublayer])
            yield Word(x, height, _("adds {value}", value=adds), "sum", "end")
            yield Word(x, height + tall.LINE, _("length {length}", length=writes), "number", "end")
    for layer, length in enumerate(between_blocks(plan, found)):
        yield Word(after_stream, plan.at(layer, 0) + tall.TITLE, f"‖x‖₂ {number(length)}", "number", "start")


def between_blocks(plan: Plan, found: Overview) -> np.ndarray:
    """The stream's length before each block, and after the last."""
    return found.stream[:: len(plan.changes()) // plan.config.num_layers]


def explanations(plan: Plan, legend: Sequence[tuple[str, Box]], largest: float, adds: str) -> Iterator[Word]:
    """Of the discs and of the colours."""
    for kind, (_left, upper, right, lower) in legend:
        yield Word(right + 12, (upper + lower) / 2, look_up(DISCS[kind]), side="start")
    left, upper, right, lower = plan.scale
    yield Word((left + right) / 2, upper - 8, adds)
    for x, value, side in ((left, -largest, "start"), ((left + right) / 2, 0.0, "middle"), (right, largest, "end")):
        yield Word(x, lower + 8, signed(value), "tick", side)


def signed(value: float, roomy: bool = True) -> str:
    """Three significant digits and the sign; in little room, two decimals."""
    if not roomy:
        return added(value)
    return f"{'+' if value > 0 else ''}{number(value)}"
