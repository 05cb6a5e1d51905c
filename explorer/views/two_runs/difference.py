"""The difference A − B of two runs' figures."""

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from explorer.explain.notation import format_contribution, format_number
from explorer.tracing.comparison import Comparison
from explorer.translations import _
from explorer.views import graph_objects as go
from explorer.views.intervention_effects import annotate_empty
from explorer.views.style import TOKEN_AXIS_KEY
from explorer.views.two_runs.scale import axis_name, value_key

MAX_CELL_TEXTS = 400  # differences that are written into cells
VALUE_SETTINGS = (
    "range",
    "autorangeoptions",
    "type",
    "dtick",
    "tickvals",
    "ticktext",
    "tickformat",
    "exponentformat",
)


class NoDifferenceError(Exception):
    """Two figures have no difference; the message says why, in a sentence."""


def subtract_figures(first: go.Figure, second: go.Figure, comparison: Comparison, title: str) -> go.Figure:
    """Return the figure of A − B: each value of A less B's at the same place; blank where B has none.

    Places correspond if their tokens are aligned or, on other axes, if their labels are equal.

    Args:
        title: of the panel.

    Raises:
        NoDifferenceError: the figures have no values at corresponding places.
    """
    traces, layout = first.traces_and_layout
    others, other_layout = second.traces_and_layout
    if [plot_trace["type"] for plot_trace in traces] != [plot_trace["type"] for plot_trace in others]:
        raise NoDifferenceError(_("A and B are drawn in different ways here: look at them in turn."))
    if not comparison.is_comparable and layout["meta"][TOKEN_AXIS_KEY]:
        raise NoDifferenceError(
            _("No token of B is aligned with one of A. View them one at a time, or align two tokens.")
        )
    differences = [
        _subtract_trace(trace_a, trace_b, layout, other_layout, comparison)
        for trace_a, trace_b in zip(traces, others, strict=True)
    ]
    values = np.concatenate(
        [np.ravel(np.asarray(plot_trace[value_key(plot_trace)], float)) for plot_trace in differences]
    )
    finite = np.abs(values[np.isfinite(values)])
    if not finite.size:
        raise NoDifferenceError(_("A and B have nothing in common here. View them one at a time."))
    largest = float(finite.max())
    alt = _("A − B of: {title}. The largest difference is {most}.", title=title, most=format_number(largest))
    if not largest:
        alt = _("A − B of: {title}. There is no difference.", title=title)
    figure = first.replace_data(
        [_use_signed_scale(plot_trace, largest) for plot_trace in differences],
        _difference_layout(differences, layout, alt),
    )
    if not largest:
        annotate_empty(figure, _("A and B are the same here."))
    return figure


def _subtract_trace(
    trace_a: go.Trace, trace_b: go.Trace, layout: Mapping, other_layout: Mapping, comparison: Comparison
) -> go.Trace:
    letter = value_key(trace_a)
    values_a, values_b = (np.asarray(plot_trace[letter], float) for plot_trace in (trace_a, trace_b))
    for axis, axis_letter in enumerate({"z": "yx", "y": "x", "x": "y"}[letter]):
        keys_a = _axis_keys(trace_a, axis_letter, layout, values_a.shape[axis])
        keys_b = _axis_keys(trace_b, axis_letter, other_layout, values_b.shape[axis])
        if axis_letter in layout["meta"][TOKEN_AXIS_KEY]:
            inverse = comparison.alignment.inverse
            keys_b = [inverse[position] if position < len(inverse) else None for position in keys_b]
        values_b = _take_along(values_b, _match_indices(keys_a, keys_b), axis)
    return trace_a | {letter: values_a - values_b}


def _axis_keys(trace: go.Trace, letter: str, layout: Mapping[str, Any], count: int) -> list[Hashable]:
    """Return the key of each coordinate of an axis: token positions, or else tick labels, or else numbers."""
    axis = layout.get(axis_name(trace, letter), {})
    coordinates = trace.get(letter, range(count))
    values = coordinates.tolist() if isinstance(coordinates, np.ndarray) else list(coordinates)
    if letter in layout["meta"][TOKEN_AXIS_KEY]:
        order = {category: i for i, category in enumerate(axis.get("categoryarray", ()))}
        return [order.get(value, value) for value in values]
    ticks = [value.item() if isinstance(value, np.generic) else value for value in axis.get("tickvals", ())]
    names = dict(zip(ticks, axis.get("ticktext", ()), strict=False))
    return [names.get(value, value) for value in values] if set(values) <= set(names) else values


def _match_indices(keys_a: Sequence[Hashable], keys_b: Sequence[Hashable]) -> np.ndarray:
    """Return the index of each of A's keys among B's, -1 for those that B does not have.

    Raises:
        NoDifferenceError: a key occurs more than once.
    """
    if list(keys_a) == list(keys_b):
        return np.arange(len(keys_a))
    known_keys = [axis_key for axis_key in keys_b if axis_key is not None]
    if len(set(known_keys)) < len(known_keys) or len(set(keys_a)) < len(keys_a):
        raise NoDifferenceError(_("A and B are drawn in different ways here: look at them in turn."))
    index_by_key = {axis_key: i for i, axis_key in enumerate(keys_b)}
    return np.array([index_by_key.get(axis_key, -1) if axis_key is not None else -1 for axis_key in keys_a], dtype=int)


def _take_along(values: np.ndarray, indices: np.ndarray, axis: int) -> np.ndarray:
    if not values.shape[axis]:
        return np.full([len(indices) if i == axis else size for i, size in enumerate(values.shape)], np.nan)
    selected = np.take(values, indices, axis)
    is_missing = indices < 0
    return (
        np.where(is_missing if axis == selected.ndim - 1 else is_missing[:, None], np.nan, selected)
        if is_missing.any()
        else selected
    )


def _use_signed_scale(trace: go.Trace, largest: float) -> go.Trace:
    """Return the trace with a scale of signed values and hover texts of differences."""
    letter = value_key(trace)
    values = trace[letter]
    location = "%{hovertext}" if "hovertext" in trace and trace["type"] != "heatmap" else "%{x}"
    location = "%{x} · %{y}" if letter == "z" else location if letter == "y" else "%{y}"
    new = {
        "hovertemplate": f"{location}<br>A − B %{{{letter}:+.3g}}<extra></extra>",
        "texttemplate": None,
        "text": None,
    }
    if letter == "z":
        bar = {**trace.get("colorbar", {}), "title": {"text": "A − B", "side": "right"}}
        new |= {
            "zmin": -(largest or 1),
            "zmax": largest or 1,
            "autocolorscale": True,
            "colorbar": bar,
            "showscale": True,
        }
        new |= {"hoverongaps": False}
    if trace.get("texttemplate") and values.size <= MAX_CELL_TEXTS:
        new |= {
            "text": [["" if np.isnan(v) else format_contribution(v) for v in row] for row in values],
            "texttemplate": "%{text}",
        }
    return trace | new


def _difference_layout(traces: Sequence[go.Trace], layout: Mapping[str, Any], alt: str) -> dict[str, Any]:
    """Return the layout for differences, without settings that only hold for values, such as marks at some of them."""
    new = {**layout, "meta": {**layout["meta"], "alt": alt}, "annotations": []}
    for axis in {axis_name(plot_trace, value_key(plot_trace)) for plot_trace in traces if value_key(plot_trace) != "z"}:
        settings = {name: value for name, value in layout.get(axis, {}).items() if name not in VALUE_SETTINGS}
        new[axis] = {**settings, "title": {"text": "A − B"}}
        letter = axis[0]
        new["shapes"] = [shape for shape in new.get("shapes", ()) if _spans_axis(shape, letter)]
    return new


def _spans_axis(shape: Mapping[str, Any], letter: str) -> bool:
    """Return whether a shape spans the whole axis of values, and so marks none of them."""
    return shape.get(f"{letter}ref", letter) != letter
