"""The words and numbers on the map of a model."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from explorer.analysis.overview import Overview
from explorer.explain.notation import added, number
from explorer.language import N_, _, look_up
from explorer.views.overview import plan as at
from explorer.views.overview.diagram import Part, Word
from explorer.views.overview.plan import Box, Plan

DISCS = {"norm": N_("norm"), "addition": N_("addition"), "rotation": N_("rotation")}  # as shown


def names(plan: Plan, kinds: Mapping[str, Sequence[Part]]) -> Iterator[Word]:
    """Of layers and rows, and next tokens with their probabilities.

    Args:
        kinds: the parts of each kind.
    """
    for part in kinds["next_token"]:
        left, upper, right, lower = part.box
        height = (upper + lower) / 2 - 3
        yield Word(left + 3, height, part.written, "token", "start")
        yield Word(right - 3, height, number(part.value), "number", "end")
    yield Word(at.NEXT_TOKENS[1], kinds["next_token"][0].box[1] - 10, _("model’s probability"), side="end")
    if not plan.roomy:
        yield Word(at.LEFT - 4, at.TITLES, _("layer"), "title", "end")
    for layer in range(plan.config.num_layers):
        yield Word(plan.at(layer, 0.5), at.TITLES, plan.title(layer), "title")
    yield Word(at.LEFT - 4, float(np.mean(at.HEADS)), _("attention"), "title", "end")
    yield Word(at.LEFT - 4, float(np.mean(at.FEED_FORWARD)), _("feed-forward"), "title", "end")
    if "rotation" in kinds:
        yield Word(at.LEFT - 4, at.ROTATION, _("rotary angles"), side="end")


def numbers(plan: Plan, found: Overview, adds: str) -> Iterator[Word]:
    """What each sublayer adds and writes, and the stream's length between the blocks, where there is room.

    Args:
        adds: what contributions are called.
    """
    if not plan.numbered:
        return
    for height, name, values, kind in (
        (at.ATTENTION_ADDS, adds, (signed(value, plan.roomy) for value in found.adds[:, 0]), "sum"),
        (at.ATTENTION_WRITES, _("length it writes"), map(number, found.writes[:, 0]), "number"),
        (at.FEED_FORWARD_ADDS, adds, (signed(value, plan.roomy) for value in found.adds[:, 1]), "sum"),
        (at.FEED_FORWARD_WRITES, _("length it writes"), map(number, found.writes[:, 1]), "number"),
    ):
        yield Word(at.LEFT - 4, height, name, side="end")
        for layer, value in enumerate(values):
            yield Word(plan.at(layer, 0.5), height, value, kind)
    yield Word(at.TOKEN[0], at.STREAM_LENGTHS, _("length ‖x‖₂"), side="start")
    between = found.stream[:: len(plan.changes()) // plan.config.num_layers]
    for layer, length in enumerate(between):
        yield Word(plan.at(layer, 0) + 6, at.STREAM_LENGTHS, number(length), "number", "end")


def explanations(legend: Sequence[tuple[str, Box]], largest: float, adds: str) -> Iterator[Word]:
    """Of the discs and of the colours."""
    for kind, (_left, upper, right, lower) in legend:
        yield Word(right + 12, (upper + lower) / 2, look_up(DISCS[kind]), side="start")
    left, upper, right, lower = at.SCALE
    yield Word((left + right) / 2, upper - 8, adds)
    for x, value, side in ((left, -largest, "start"), ((left + right) / 2, 0.0, "middle"), (right, largest, "end")):
        yield Word(x, lower + 8, signed(value), "number", side)


def signed(value: float, roomy: bool = True) -> str:
    """Three significant digits and the sign; in little room, two decimals."""
    if not roomy:
        return added(value)
    return f"{'+' if value > 0 else ''}{number(value)}"
