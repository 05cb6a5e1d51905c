"""Plotly's graph objects as plain dictionaries: building and checking plotly's own takes longer than all else of a
picture. They have plotly's names, and become plotly's own where somebody works with a figure, in a notebook say."""

import base64
from collections.abc import Mapping, Sequence
from functools import cached_property, partial
from typing import Any

import numpy as np
import plotly.graph_objects

Trace = dict[str, Any]  # one of a figure's sets of bars, lines or cells
Bar = partial(dict, type="bar")
Heatmap = partial(dict, type="heatmap")
Scatter = partial(dict, type="scatter")

# numpy's names of what plotly.js reads as it stands in memory -> its own
TYPED_ARRAYS = {"int8": "i1", "uint8": "u1", "int16": "i2", "int32": "i4", "float32": "f4", "float64": "f8"}
AS_LISTS = ("range",)  # settings that plotly.js reads as lists alone


class Figure:
    """Some traces and a layout.

    Args:
        traces: one or more, from the lowest to the uppermost.
        layout: plotly's settings, by name.
        template: plotly's, for when the figure is shown by itself; the page has its own.
    """

    def __init__(self, traces: Trace | Sequence[Trace], layout: Mapping[str, Any], template: Mapping[str, Any]):
        self._traces = [traces] if isinstance(traces, Mapping) else list(traces)
        self._layout, self._template = dict(layout), template

    def to_plotly_json(self) -> dict[str, Any]:
        """The data and the layout as plotly.js takes them, without the template."""
        return {"data": [_packed(trace) for trace in self._traces], "layout": _packed(self._layout)}

    @property
    def parts(self) -> tuple[list[Trace], dict[str, Any]]:
        """Its traces and its layout, to make another figure of; not to be written to."""
        return self._traces, self._layout

    def remade(self, traces: Sequence[Trace], layout: Mapping[str, Any]) -> "Figure":
        """Another figure, that looks like this one."""
        return Figure(traces, layout, self._template)

    @cached_property
    def plotly(self) -> plotly.graph_objects.Figure:
        """Plotly's own figure, made when it is first asked for; ValueError where plotly knows no such property."""
        layout = {**self._layout, "template": self._template}
        return plotly.graph_objects.Figure(self._traces, layout)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Figure) and self.to_plotly_json() == other.to_plotly_json()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # which copying and pickling ask for
            raise AttributeError(name)
        return getattr(self.plotly, name)

    def _repr_mimebundle_(self, *args: Any, **kwargs: Any) -> Any:
        return self.plotly._repr_mimebundle_(*args, **kwargs)

    def note(self, **meta: Any) -> "Figure":
        """Tell the page's script more of the figure, besides its text alternative."""
        self._layout["meta"] = {**self._layout["meta"], **meta}
        return self

    def changes(self, texts: Sequence, of: str = "edits", adds: bool = True, looks_from: int | None = None) -> "Figure":
        """Have a click on a point change a run, or take that change back.

        Args:
            texts: of each cell, row by row, or of each bar, the intervention that it stands for; "" for none.
            of: the field of the page's state with that run's interventions.
            adds: whether the click is one with Shift, or +, and the change is added to others; or else a plain one, or
                Enter, and the change takes the place of those of its kind.
            looks_from: the query in A after which what follows of the change is seen; None for the chosen one.
        """
        return self.note(changes={"texts": texts, "of": of, "adds": adds, "looks_from": looks_from})

    def add_shape(self, **shape: Any) -> "Figure":
        return self._add("shapes", shape)

    def add_annotation(self, **annotation: Any) -> "Figure":
        return self._add("annotations", annotation)

    def add_hline(self, y: Any, **line: Any) -> "Figure":
        return self.add_shape(type="line", x0=0, x1=1, xref="x domain", y0=y, y1=y, yref="y", **line)

    def add_vline(self, x: Any, **line: Any) -> "Figure":
        return self.add_shape(type="line", x0=x, x1=x, xref="x", y0=0, y1=1, yref="y domain", **line)

    def add_hrect(self, y0: Any, y1: Any, **rectangle: Any) -> "Figure":
        return self.add_shape(type="rect", x0=0, x1=1, xref="x domain", y0=y0, y1=y1, yref="y", **rectangle)

    def add_vrect(self, x0: Any, x1: Any, **rectangle: Any) -> "Figure":
        return self.add_shape(type="rect", x0=x0, x1=x1, xref="x", y0=0, y1=1, yref="y domain", **rectangle)

    def _add(self, kind: str, one: dict[str, Any]) -> "Figure":
        self._layout[kind] = [*self._layout.get(kind, ()), one]
        if "plotly" in vars(self):  # it has been made, and perhaps worked on
            self.plotly.layout[kind] += (one,)
        return self


def _packed(value: Any, name: str = "") -> Any:
    """Without what is None, and with every array of numbers as plotly.js reads it fastest: in base64, its "typed array
    specification"."""
    if isinstance(value, Mapping):
        return {key: _packed(part, key) for key, part in value.items() if part is not None}
    if not isinstance(value, np.ndarray):
        return value
    if value.dtype == np.int64 and value.size and np.abs(value).max() < 2**31:
        value = value.astype(np.int32)  # plotly.js has no wider ones
    kind = TYPED_ARRAYS.get(str(value.dtype))
    if kind is None or not value.size or name in AS_LISTS:
        return value.tolist()
    packed = {"dtype": kind, "bdata": base64.b64encode(np.ascontiguousarray(value)).decode("ascii")}
    return packed | ({"shape": ", ".join(map(str, value.shape))} if value.ndim > 1 else {})
