"""The labels and numbers on the map of a model."""

from collections.abc import Iterator, Sequence

import numpy as np

from explorer.analysis.direct_logit_attribution import Overview
from explorer.explain.notation import format_contribution, format_number
from explorer.translations import N_, _, translate
from explorer.views.overview import landscape_layout, portrait_layout
from explorer.views.overview.landscape_layout import LandscapeLayout
from explorer.views.overview.map_data import MapLabel
from explorer.views.overview.map_layout import Box, MapLayout
from explorer.views.overview.next_tokens import NextTokenBox
from explorer.views.overview.portrait_layout import PortraitLayout
from explorer.views.style import shorten_token

DISCS = {"norm": N_("norm"), "addition": N_("addition"), "rotation": N_("rotation")}  # as shown


def next_token_labels(plan: MapLayout, next_tokens: Sequence[NextTokenBox], max_chars: int) -> Iterator[MapLabel]:
    """Yield the next tokens, cut to `max_chars` characters, with their probabilities."""
    boxes = [plan.next_token(row) for row in range(len(next_tokens))]
    for next_token, (left, upper, right, lower) in zip(next_tokens, boxes, strict=True):
        height = (upper + lower) / 2 - 3
        yield MapLabel(left + 3, height, shorten_token(next_token.token, max_chars), "token", "start")
        yield MapLabel(right - 3, height, format_number(next_token.probability), "number", "end")
    yield MapLabel(boxes[0][2], boxes[0][1] - 10, _("model’s probability"), "heading", "end")


def landscape_labels(plan: LandscapeLayout, overview: Overview, contribution_label: str) -> Iterator[MapLabel]:
    """Yield the labels of layers and rows and, where there is room, each sublayer's numbers and the stream's norms.

    A sublayer's numbers are its contribution and the norm of what it writes.

    Args:
        contribution_label: the name of contributions.
    """
    layers, left = range(plan.config.num_layers), plan.start - 4
    if not plan.has_room_for_labels:
        yield MapLabel(left, landscape_layout.TITLES, _("layer"), "title", "end")
    for layer in layers:
        yield MapLabel(plan.heads_centre(layer), landscape_layout.TITLES, plan.title(layer), "title")
    yield MapLabel(left, float(np.mean(plan.heads)), _("attention"), "title", "end")
    yield MapLabel(left, float(np.mean(plan.feed_forward)), _("feed-forward"), "title", "end")
    if plan.config.position == "rope":
        yield MapLabel(left, plan.rotary, _("rotary angles"), side="end")
    if not plan.has_room_for_numbers:
        return
    for height, name, values, kind in (
        (
            landscape_layout.ATTENTION_ADDS,
            contribution_label,
            (format_signed(value, plan.has_room_for_labels) for value in overview.logit_effects[:, 0]),
            "sum",
        ),
        (
            landscape_layout.ATTENTION_WRITES,
            _("length it writes"),
            map(format_number, overview.write_norms[:, 0]),
            "number",
        ),
        (
            landscape_layout.FEED_FORWARD_ADDS,
            contribution_label,
            (format_signed(value, plan.has_room_for_labels) for value in overview.logit_effects[:, 1]),
            "sum",
        ),
        (
            landscape_layout.FEED_FORWARD_WRITES,
            _("length it writes"),
            map(format_number, overview.write_norms[:, 1]),
            "number",
        ),
    ):
        yield MapLabel(left, height, name, "heading", "end")
        for layer, value in enumerate(values):
            yield MapLabel(plan.heads_centre(layer), height, value, kind)
    yield MapLabel(plan.token[0], landscape_layout.STREAM_LENGTHS, _("length ‖x‖₂"), "heading", "start")
    for layer, length in enumerate(residual_norms(plan, overview)):
        yield MapLabel(
            plan.layer_offset(layer, 0) + 6, landscape_layout.STREAM_LENGTHS, format_number(length), "number", "end"
        )


def portrait_labels(plan: PortraitLayout, overview: Overview) -> Iterator[MapLabel]:
    """Yield the portrait layout's labels and numbers, in each block for itself."""
    (left, right), after_stream = plan.heads, plan.stream + plan.max_line_width / 2 + 5
    if plan.config.position == "rope":
        yield MapLabel(portrait_layout.LEFT, plan.start - 8, _("rotary angles"), side="start")
    for layer in range(plan.config.num_layers):
        yield MapLabel(
            left, plan.layer_offset(layer, 0) + portrait_layout.TITLE, _("layer {layer}", layer=layer), "title", "start"
        )
        yield MapLabel(
            portrait_layout.ATTENTION, plan.layer_offset(layer, 0) + portrait_layout.TITLE, _("attention"), side="end"
        )
        for x, height, sublayer in (
            (right, plan.span(layer, "heads")[1] + portrait_layout.LABELS, 0),
            (
                portrait_layout.RIGHT,
                plan.span(layer, "feed_forward")[0] - portrait_layout.LABELS - portrait_layout.LINE,
                1,
            ),
        ):
            adds, writes = (
                format_signed(overview.logit_effects[layer, sublayer]),
                format_number(overview.write_norms[layer, sublayer]),
            )
            yield MapLabel(x, height, _("adds {value}", value=adds), "sum", "end")
            yield MapLabel(x, height + portrait_layout.LINE, _("length {length}", length=writes), "number", "end")
    for layer, length in enumerate(residual_norms(plan, overview)):
        yield MapLabel(
            after_stream,
            plan.layer_offset(layer, 0) + portrait_layout.TITLE,
            f"‖x‖₂ {format_number(length)}",
            "number",
            "start",
        )


def residual_norms(plan: MapLayout, overview: Overview) -> np.ndarray:
    """Return the stream's norm before each block and after the last."""
    return overview.stream[:: len(plan.change_offsets()) // plan.config.num_layers]


def legend_labels(
    plan: MapLayout, legend: Sequence[tuple[str, Box]], largest: float, contribution_label: str
) -> Iterator[MapLabel]:
    """Yield the labels of the legend's discs and of the colour scale."""
    for kind, (_left, upper, right, lower) in legend:
        yield MapLabel(right + 12, (upper + lower) / 2, translate(DISCS[kind]), side="start")
    left, upper, right, lower = plan.scale
    yield MapLabel((left + right) / 2, upper - 8, contribution_label)
    for x, value, side in ((left, -largest, "start"), ((left + right) / 2, 0.0, "middle"), (right, largest, "end")):
        yield MapLabel(x, lower + 8, format_signed(value), "tick", side)


def format_signed(value: float, has_room: bool = True) -> str:
    """Format with three significant digits and the sign; without room, with two decimals."""
    if not has_room:
        return format_contribution(value)
    return f"{'+' if value > 0 else ''}{format_number(value)}"
