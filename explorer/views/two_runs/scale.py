"""One scale for the same picture of two runs."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from explorer.views import graph_objects as go


def on_one_scale(figure: go.Figure, other: go.Figure) -> go.Figure:
    """A figure with the colours, and the range of values, that hold for both; of its own range where they differ in
    kind."""
    traces, layout = figure.parts
    others, other_layout = other.parts
    paired = zip(traces, others, strict=False)
    both = [_same_colours(one, two) for one, two in paired] + traces[len(others) :]
    for axis in value_axes(traces) & value_axes(others):
        layout = layout | {axis: _same_range(axis, layout, others, other_layout)}
    return figure.remade(both, layout)


def value_axes(traces: list[go.Trace]) -> set[str]:
    """Names in the layout of the axes along which bars and lines have their values."""
    return {axis_name(each, value_of(each)) for each in traces if value_of(each) != "z"}


def axis_name(trace: go.Trace, letter: str) -> str:
    """In the layout, of the axis of an array: of "y" of what stands on "y2" it is "yaxis2"."""
    return f"{letter}axis{trace.get(f'{letter}axis', letter)[1:]}"


def value_of(trace: go.Trace) -> str:
    """Which array of a set of bars, lines or cells has its values."""
    if trace["type"] == "heatmap":
        return "z"
    return "x" if trace.get("orientation") == "h" else "y"


def _same_colours(one: go.Trace, two: go.Trace) -> go.Trace:
    if one["type"] != "heatmap" or two["type"] != "heatmap" or "zmin" not in one or "zmin" not in two:
        return one
    return one | {"zmin": min(one["zmin"], two["zmin"]), "zmax": max(one["zmax"], two["zmax"])}


def _same_range(
    axis: str, layout: Mapping[str, Any], others: Sequence[go.Trace], other_layout: Mapping[str, Any]
) -> Mapping[str, Any]:
    mine, theirs = layout.get(axis, {}), other_layout.get(axis, {})
    if mine.get("type") != theirs.get("type"):
        return mine
    if "range" in mine and "range" in theirs:
        (first, last), ends = mine["range"], sorted([*mine["range"], *theirs["range"]])
        return {**mine, "range": [ends[0], ends[-1]] if first <= last else [ends[-1], ends[0]]}
    on_it = [each for each in others if axis_name(each, axis[0]) == axis and value_of(each) == axis[0]]
    values = [np.ravel(np.asarray(each[axis[0]], float)) for each in on_it]
    finite = np.concatenate([part[np.isfinite(part)] for part in values]) if values else np.array([])
    if "range" in mine or not finite.size or mine.get("type") == "category":
        return mine
    return {**mine, "autorangeoptions": {"include": [float(finite.min()), float(finite.max())]}}
