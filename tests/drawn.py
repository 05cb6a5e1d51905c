"""A figure read as the browser shows it: what the pointer is told of each point, and what a click there selects."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from explorer.views import graph_objects as go
from explorer.views.overview.diagram import Diagram
from explorer.views.view import Panel
from explorer.web.widgets.figure import Figure
from explorer.web.widgets.model_map import ModelMap
from tests.drawn_parts import cells, dots, element, filled, unpacked

NUMBER = re.compile(r"(?<![\w.])[+−-]?(\d[\d,]*(?:\.\d+)?)(?:e([+−-]?\d+))?(%?)")


@dataclass(frozen=True)
class Point:
    """What can be pointed at.

    Attributes:
        part: which of the figure's traces, or of the map's kinds of parts, it is of.
        item: its place in that, or among all parts of the map; None in a heatmap.
        x, y: its place; on an axis of names counted from 0, as the page's script does.
        z: a heatmap's value, or that of a part of the map; None of others.
        width: how long its bar is, from its base, None of others.
        colour: its marker's, where each has its own.
        told: text under the pointer.
        change: what a click there selects.
    """

    part: int
    item: int | None
    x: float
    y: float
    z: float | None
    width: float | None
    colour: Any
    told: str
    change: dict[str, Any]

    @property
    def value(self) -> float:
        """What it shows: colour of a cell, length of a bar, or else height of a dot."""
        return next(shown for shown in (self.z, self.width, self.y) if shown is not None)


class Picture:
    """A figure after it has travelled to the browser.

    Args:
        figure: as a panel draws it.
        selects: what its panel says a click selects.
    """

    def __init__(self, figure: go.Figure, selects: Mapping[str, str | Sequence[str]] | None = None):
        data, layout = Figure.pack(figure)
        self.parts, self.layout = (unpacked(json.loads(packed)) for packed in (data, layout))
        self.selects = selects or {}

    def axis(self, letter: str, part: Mapping[str, Any] | None = None) -> dict[str, Any]:
        number = (part or {}).get(f"{letter}axis", letter)[1:]
        return self.layout.get(f"{letter}axis{number}", {})

    def title(self, letter: str) -> str:
        return self.axis(letter).get("title", {}).get("text", "")

    def points(self) -> list[Point]:
        """All that answer the pointer."""
        return [p for i, part in enumerate(self.parts) if part.get("hoverinfo") != "skip" for p in self._of(i, part)]

    def _of(self, i: int, part: Mapping[str, Any]) -> Iterator[Point]:
        for at, seen in cells(part) if part["type"] == "heatmap" else dots(part):
            x, y = (self._place(seen[letter], letter, part) for letter in "xy")
            customdata = element(part.get("customdata"), at)
            texts = {name: element(part.get(name), at) for name in ("text", "hovertext")}
            written = (
                seen
                if part["type"] == "heatmap"
                else seen | {name: self._told(seen[name], name, part) for name in "xy"}
            )
            told = filled(part["hovertemplate"], written | texts | {"customdata": customdata})
            bar = part["type"] == "bar"
            yield Point(
                part=i,
                item=at[0] if len(at) == 1 else None,
                x=x,
                y=y,
                z=seen.get("z"),
                width=seen["x" if part.get("orientation") == "h" else "y"] if bar else None,
                colour=element(part.get("marker", {}).get("color"), at),
                told=told,
                change=self._change(x, y, customdata),
            )

    def _place(self, value: Any, letter: str, part: Mapping[str, Any]) -> float:
        if not isinstance(value, str):
            return value
        axis, on_it = self.axis(letter, part), part.get(f"{letter}axis", letter)
        named = [name for p in self.parts if p.get(f"{letter}axis", letter) == on_it for name in p.get(letter, ())]
        return list(dict.fromkeys([*axis.get("categoryarray", ()), *named])).index(value)

    def _told(self, value: Any, letter: str, part: Mapping[str, Any]) -> Any:
        """A coordinate as hovers over bars and dots have it: what the axis writes there, where that was given."""
        axis = self.axis(letter, part)
        ticks = dict(zip(axis.get("tickvals", ()), axis.get("ticktext", ()), strict=True))
        return ticks.get(value, value)

    def _change(self, x: float, y: float, customdata: Any) -> dict[str, Any]:
        change = {}
        for source, field in self.selects.items():
            if isinstance(field, str):
                change[field] = {"x": x, "y": y, "customdata": customdata}[source]
            else:
                change |= dict(zip(field, customdata, strict=True))
        return change


class Map:
    """A map of a model after it has travelled to the browser.

    Args:
        sheet: which of its arrangements, 0 for that of a wide page and 1 for that of a narrow one.
    """

    def __init__(self, diagram: Diagram, sheet: int = 0):
        packed = json.loads(json.dumps(ModelMap.pack(diagram)))
        self.content = packed | packed["sheets"][sheet]
        written = self.content["written"]
        self.parts = [
            {"kind": kind, "box": boxes[sheet], "told": told, "selects": selects, "value": value}
            | {"written": text if kind in written else ""}
            for kind, boxes, told, selects, value, text in packed["parts"]
        ]
        self.selects: dict[str, str] = {}  # each part says itself what a click on it selects

    def points(self) -> list[Point]:
        kinds = list(dict.fromkeys(part["kind"] for part in self.parts))
        return [self._of(i, part, kinds.index(part["kind"])) for i, part in enumerate(self.parts)]

    def _of(self, i: int, part: Mapping[str, Any], kind: int) -> Point:
        left, upper, right, lower = part["box"]
        return Point(
            part=kind,
            item=i,
            x=(left + right) / 2,
            y=(upper + lower) / 2,
            z=part["value"],
            width=None,
            colour=None,
            told=part["told"],
            change=part["selects"],
        )


def picture_of(panel: Panel, drawn: Any) -> Picture | Map:
    """What a panel drew, as the browser has it."""
    return Map(drawn) if panel.kind == "model_map" else Picture(drawn, panel.selects)


def tells(text: str, value: float) -> bool:
    """Whether a number in the text is this one, as far as its digits say."""
    return any(abs(number - value) <= unit * 0.51 for number, unit in numbers(text))


def numbers(text: str) -> Iterator[tuple[float, float]]:
    """The numbers in a text, and what one more of their last digits is worth: nothing of small whole ones."""
    for match in NUMBER.finditer(text):
        digits, exponent, percent = match.groups()
        number = float(match[0].rstrip("%").replace(",", "").replace("−", "-"))
        decimals = len(digits.partition(".")[2])
        scale = 10.0 ** int((exponent or "0").replace("−", "-")) / (100 if percent else 1)
        rounded = "." in digits or len(digits) > 2 or exponent
        yield number / (100 if percent else 1), 10.0**-decimals * scale if rounded else 1e-9
