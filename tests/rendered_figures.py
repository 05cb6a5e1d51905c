"""Figures as the browser shows them: hover texts of points, and selections by click."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from explorer.views import graph_objects as go
from explorer.views.overview.map_parts import ModelMap
from explorer.views.view import Panel
from explorer.web.widgets.figure import ModelMapWidget, PlotlyFigureWidget
from tests.plotly_points import fill_template, get_element, iter_cells, iter_dots, unpack_arrays

NUMBER = re.compile(r"(?<![\w.])[+−-]?(\d[\d,]*(?:\.\d+)?)(?:e([+−-]?\d+))?(%?)")


@dataclass(frozen=True)
class Point:
    """Point that the pointer can hover over.

    Attributes:
        group: index of its trace in the figure, or of its kind of component in the map.
        item: its index in the trace, or among all components of the map; None in a heatmap.
        x, y: its coordinates; on a categorical axis counted from 0, as the page's script does.
        z: value of a heatmap's cell or of a component of the map; None for others.
        width: length of its bar from the base; None for others.
        colour: its marker's, if each point has its own.
        hover_text: text at the pointer.
        change: fields of the selection that a click sets.
    """

    group: int
    item: int | None
    x: float
    y: float
    z: float | None
    width: float | None
    colour: Any
    hover_text: str
    change: dict[str, Any]

    @property
    def value(self) -> float:
        """Value that the point shows: colour of a cell, length of a bar, or else height of a dot."""
        return next(value for value in (self.z, self.width, self.y) if value is not None)


class RenderedFigure:
    """A figure after it has been sent to the browser.

    Args:
        figure: as a panel draws it.
        selects: the panel's mapping of a click to fields of the selection.
    """

    def __init__(self, figure: go.Figure, selects: Mapping[str, str | Sequence[str]] | None = None):
        data, layout = PlotlyFigureWidget.pack(figure)
        self.parts, self.layout = (unpack_arrays(json.loads(packed)) for packed in (data, layout))
        self.selects = selects or {}

    def axis(self, letter: str, trace: Mapping[str, Any] | None = None) -> dict[str, Any]:
        number = (trace or {}).get(f"{letter}axis", letter)[1:]
        return self.layout.get(f"{letter}axis{number}", {})

    def title(self, letter: str) -> str:
        return self.axis(letter).get("title", {}).get("text", "")

    def points(self) -> list[Point]:
        """Return all points that respond to the pointer."""
        return [
            p
            for i, trace in enumerate(self.parts)
            if trace.get("hoverinfo") != "skip"
            for p in self._trace_points(i, trace)
        ]

    def _trace_points(self, i: int, trace: Mapping[str, Any]) -> Iterator[Point]:
        for index, values in iter_cells(trace) if trace["type"] == "heatmap" else iter_dots(trace):
            x, y = (self._coordinate(values[letter], letter, trace) for letter in "xy")
            customdata = get_element(trace.get("customdata"), index)
            texts = {name: get_element(trace.get(name), index) for name in ("text", "hovertext")}
            displayed = (
                values
                if trace["type"] == "heatmap"
                else values | {name: self._tick_label(values[name], name, trace) for name in "xy"}
            )
            hover_text = fill_template(trace["hovertemplate"], displayed | texts | {"customdata": customdata})
            bar = trace["type"] == "bar"
            yield Point(
                group=i,
                item=index[0] if len(index) == 1 else None,
                x=x,
                y=y,
                z=values.get("z"),
                width=values["x" if trace.get("orientation") == "h" else "y"] if bar else None,
                colour=get_element(trace.get("marker", {}).get("color"), index),
                hover_text=hover_text,
                change=self._change(x, y, customdata),
            )

    def _coordinate(self, value: Any, letter: str, trace: Mapping[str, Any]) -> float:
        if not isinstance(value, str):
            return value
        axis, axis_id = self.axis(letter, trace), trace.get(f"{letter}axis", letter)
        categories = [
            name for p in self.parts if p.get(f"{letter}axis", letter) == axis_id for name in p.get(letter, ())
        ]
        return list(dict.fromkeys([*axis.get("categoryarray", ()), *categories])).index(value)

    def _tick_label(self, value: Any, letter: str, trace: Mapping[str, Any]) -> Any:
        """Return a coordinate as in hover texts of bars and dots: the axis's tick label, if there is one."""
        axis = self.axis(letter, trace)
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


class RenderedMap:
    """A map of a model after it has been sent to the browser.

    Args:
        sheet: index of its layout: 0 for a wide page, 1 for a narrow one.
    """

    def __init__(self, diagram: ModelMap, sheet: int = 0):
        packed = json.loads(json.dumps(ModelMapWidget.pack(diagram)))
        self.content = packed | packed["sheets"][sheet]
        kinds_with_text = self.content["written"]
        self.parts = [
            {"kind": kind, "box": boxes[sheet], "told": hover_text, "selects": selects, "value": value}
            | {"written": text if kind in kinds_with_text else ""}
            for kind, boxes, hover_text, selects, value, text in packed["parts"]
        ]
        self.selects: dict[str, str] = {}  # each element has its own click selection

    def points(self) -> list[Point]:
        kinds = list(dict.fromkeys(component["kind"] for component in self.parts))
        return [
            self._component_point(i, component, kinds.index(component["kind"]))
            for i, component in enumerate(self.parts)
        ]

    def _component_point(self, i: int, component: Mapping[str, Any], kind: int) -> Point:
        left, upper, right, lower = component["box"]
        return Point(
            group=kind,
            item=i,
            x=(left + right) / 2,
            y=(upper + lower) / 2,
            z=component["value"],
            width=None,
            colour=None,
            hover_text=component["told"],
            change=component["selects"],
        )


def render_panel(panel: Panel, figure: Any) -> RenderedFigure | RenderedMap:
    """Return a panel's figure as the browser has it."""
    return RenderedMap(figure) if panel.kind == "model_map" else RenderedFigure(figure, panel.click_selects)


def contains_number(text: str, value: float) -> bool:
    """Return whether a text contains a number, up to the rounding of its digits."""
    return any(abs(number - value) <= unit * 0.51 for number, unit in numbers(text))


def numbers(text: str) -> Iterator[tuple[float, float]]:
    """Yield the numbers in a text, each with the value of one unit in its last digit; small integers count as exact."""
    for match in NUMBER.finditer(text):
        digits, exponent, percent = match.groups()
        number = float(match[0].rstrip("%").replace(",", "").replace("−", "-"))
        decimals = len(digits.partition(".")[2])
        scale = 10.0 ** int((exponent or "0").replace("−", "-")) / (100 if percent else 1)
        rounded = "." in digits or len(digits) > 2 or exponent
        yield number / (100 if percent else 1), 10.0**-decimals * scale if rounded else 1e-9
