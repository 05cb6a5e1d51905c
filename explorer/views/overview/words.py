"""The words and numbers on the map of a model."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import plotly.graph_objects as go

from explorer.analysis.overview import Overview
from explorer.explain.notation import added, number
from explorer.views.overview import plan as at
from explorer.views.overview.parts import Part
from explorer.views.overview.plan import Plan
from explorer.views.style import MONO, SANS

NAMED = ("token", "position", "o_proj", "lm_head")  # boxes with their name on them


class Word(NamedTuple):
    """A text; `side` is where of its place it stands."""

    x: float
    y: float
    text: str
    side: str = "center"
    size: int = 11
    family: str = SANS


def texts(plan: Plan, kinds: Mapping[str, Sequence[Part]], found: Overview, adds: str) -> go.Scatter:
    """All words as one trace.

    Args:
        kinds: the parts of each kind.
        adds: what contributions are called.
    """
    written = [*names(plan, kinds), *numbers(plan, found, adds)]
    x, y, text, side, size, family = zip(*written, strict=True)
    return go.Scatter(
        x=x,
        y=y,
        text=text,
        mode="text",
        textposition=[f"middle {place}" for place in side],
        textfont={"size": size, "family": family},
        hoverinfo="skip",
        showlegend=False,
    )


def names(plan: Plan, kinds: Mapping[str, Sequence[Part]]) -> Iterator[Word]:
    """Of parts, layers, and next tokens with their probabilities."""
    for part in (part for kind in NAMED for part in kinds.get(kind, ())):
        yield Word(np.mean(part.x), np.mean(part.y), part.written)
    for part in kinds["next_token"]:
        (left, right), height = part.x, np.mean(part.y) + 3
        yield Word(left + 1, height, part.written, "right", family=MONO)
        yield Word(right - 1, height, number(part.value), "left")
    yield Word(at.NEXT_TOKENS[1], kinds["next_token"][0].y[1] + 10, "model’s probability", "left")
    if not plan.roomy:
        yield Word(at.LEFT - 4, at.TITLES, "layer", "left", 13)
    for layer in range(plan.config.num_layers):
        yield Word(plan.at(layer, 0.5), at.TITLES, plan.title(layer), size=13)
    yield Word(at.LEFT - 4, np.mean(at.HEADS), "attention", "left", 13)
    yield Word(at.LEFT - 4, np.mean(at.FEED_FORWARD), "feed-forward", "left", 13)
    if "rotation" in kinds:
        yield Word(at.LEFT - 4, at.ROTATION, "rotary angles", "left")


def numbers(plan: Plan, found: Overview, adds: str) -> Iterator[Word]:
    """What each sublayer adds and writes, and the stream's length between the blocks, where there is room."""
    if not plan.numbered:
        return
    for height, name, values, size in (
        (at.ATTENTION_ADDS, adds, (signed(value, plan.roomy) for value in found.adds[:, 0]), 12),
        (at.ATTENTION_WRITES, "length it writes", map(number, found.writes[:, 0]), 11),
        (at.FEED_FORWARD_ADDS, adds, (signed(value, plan.roomy) for value in found.adds[:, 1]), 12),
        (at.FEED_FORWARD_WRITES, "length it writes", map(number, found.writes[:, 1]), 11),
    ):
        yield Word(at.LEFT - 4, height, name, "left")
        for layer, value in enumerate(values):
            yield Word(plan.at(layer, 0.5), height, value, size=size)
    yield Word(at.TOKEN[0], at.STREAM_LENGTHS, "length ‖x‖₂", "right")
    between = found.stream[:: len(plan.changes()) // plan.config.num_layers]
    for layer, length in enumerate(between):
        yield Word(plan.at(layer, 0) + 6, at.STREAM_LENGTHS, number(length), "left")


def signed(value: float, roomy: bool = True) -> str:
    """Three significant digits and the sign; in little room, two decimals."""
    if not roomy:
        return added(value)
    return f"{'+' if value > 0 else ''}{number(value)}"
