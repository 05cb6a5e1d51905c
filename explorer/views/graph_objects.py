"""Plotly's graph objects as plain dictionaries.

Plotly's own take longer to build and validate than the rest of a figure. These have Plotly's names, and become
Plotly's own when the figure is used as one, for example in a notebook.
"""

import base64
from collections.abc import Mapping, Sequence
from functools import cached_property, partial
from typing import Any

import numpy as np
import plotly.graph_objects

Trace = dict[str, Any]  # bars, lines or a heatmap of a figure
Bar = partial(dict, type="bar")
Scatter = partial(dict, type="scatter")

# NumPy dtype -> plotly.js's name of it, for arrays that are encoded as bytes
TYPED_ARRAYS = {"int8": "i1", "uint8": "u1", "int16": "i2", "int32": "i4", "float32": "f4", "float64": "f8"}
LIST_SETTINGS = ("range",)  # settings that must be lists


def Heatmap(**settings: Any) -> Trace:  # noqa: N802, Plotly’s name
    """Return a heatmap in the colours of the template, unless it has its own `colorscale`."""
    return {"type": "heatmap", "autocolorscale": "colorscale" not in settings, **settings}


class Figure:
    """A figure as plain dictionaries: some traces and a layout.

    Args:
        traces: one or more, from the lowest to the uppermost.
        layout: Plotly's settings by name.
        template: Plotly's template for a figure that is displayed by itself; the page has its own.
    """

    def __init__(self, traces: Trace | Sequence[Trace], layout: Mapping[str, Any], template: Mapping[str, Any]):
        self._traces = [traces] if isinstance(traces, Mapping) else list(traces)
        self._layout, self._template = dict(layout), template

    def to_plotly_json(self) -> dict[str, Any]:
        """Return data and layout as plotly.js reads them, without the template."""
        return {"data": [_encode(trace) for trace in self._traces], "layout": _encode(self._layout)}

    @property
    def traces_and_layout(self) -> tuple[list[Trace], dict[str, Any]]:
        """The traces and the layout, for building another figure; not to be modified."""
        return self._traces, self._layout

    def with_traces_and_layout(self, traces: Sequence[Trace], layout: Mapping[str, Any]) -> "Figure":
        """Return a figure with other traces and another layout, and this one's template."""
        return Figure(traces, layout, self._template)

    @cached_property
    def plotly(self) -> plotly.graph_objects.Figure:
        """Plotly's own figure, built on first use.

        Raises:
            ValueError: Plotly does not know one of the properties.
        """
        layout = {**self._layout, "template": self._template}
        return plotly.graph_objects.Figure(self._traces, layout)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Figure) and self.to_plotly_json() == other.to_plotly_json()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # copy and pickle look these up
            raise AttributeError(name)
        return getattr(self.plotly, name)

    def _repr_mimebundle_(self, *args: Any, **kwargs: Any) -> Any:
        return self.plotly._repr_mimebundle_(*args, **kwargs)

    def set_meta(self, **meta: Any) -> "Figure":
        """Add settings for the page's script to the figure's meta, besides its text alternative.

        For example `numbers`, the name of a trace's array with its numbers where those drawn are a transform of them.
        """
        self._layout["meta"] = {**self._layout["meta"], **meta}
        return self

    def set_click_interventions(
        self, texts: Sequence, state_field: str = "edits", adds: bool = True, query_in_a: int | None = None
    ) -> "Figure":
        """Let a user add an intervention to a run at a point, or remove it again.

        Args:
            texts: the intervention of each cell, row by row, or of each bar; "" for none.
            state_field: the field of the page's state with that run's interventions.
            adds: True: the button beside the derivation of the clicked point, a click with Shift and the + key add the
                intervention to the others. False: the button puts it in place of those of its kind.
            query_in_a: the query in A after which the effect is visible; None for the chosen one.
        """
        return self.set_meta(changes={"texts": texts, "of": state_field, "adds": adds, "looks_from": query_in_a})

    def add_shape(self, **shape: Any) -> "Figure":
        """Add a shape of the layout; return the figure."""
        return self._add("shapes", shape)

    def add_annotation(self, **annotation: Any) -> "Figure":
        """Add an annotation; return the figure."""
        return self._add("annotations", annotation)

    def _add(self, kind: str, element: dict[str, Any]) -> "Figure":
        self._layout[kind] = [*self._layout.get(kind, ()), element]
        if "plotly" in vars(self):  # Plotly's figure exists, and may have been modified
            self.plotly.layout[kind] += (element,)
        return self


def _encode(value: Any, name: str = "") -> Any:
    """Return a value without Nones and with every numeric array in base64, which plotly.js reads fastest.

    The format is plotly.js's "typed array specification".
    """
    if isinstance(value, Mapping):
        return {key: _encode(item, key) for key, item in value.items() if item is not None}
    if not isinstance(value, np.ndarray):
        return value
    if value.dtype == np.int64 and value.size and np.abs(value).max() < 2**31:
        value = value.astype(np.int32)  # plotly.js has no int64
    dtype = TYPED_ARRAYS.get(str(value.dtype))
    if dtype is None or not value.size or name in LIST_SETTINGS:
        return value.tolist()
    packed = {"dtype": dtype, "bdata": base64.b64encode(np.ascontiguousarray(value)).decode("ascii")}
    return packed | ({"shape": ", ".join(map(str, value.shape))} if value.ndim > 1 else {})
