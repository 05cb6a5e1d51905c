"""One scale for a panel's figures of two runs."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from explorer.views import graph_objects as go


def share_scale(figure: go.Figure, other: go.Figure) -> go.Figure:
    """Return the figure with the colour and value ranges of both runs.

    An axis whose type differs keeps its own range.
    """
    traces, layout = figure.traces_and_layout
    others, other_layout = other.traces_and_layout
    trace_pairs = zip(traces, others, strict=False)
    scaled = [_share_colour_range(trace_a, trace_b) for trace_a, trace_b in trace_pairs] + traces[len(others) :]
    for axis in value_axes(traces) & value_axes(others):
        layout = layout | {axis: _share_axis_range(axis, layout, others, other_layout)}
    return figure.replace_data(scaled, layout)


def value_axes(traces: list[go.Trace]) -> set[str]:
    """Return the layout names of the axes along which bars and lines have their values."""
    return {axis_name(plot_trace, value_key(plot_trace)) for plot_trace in traces if value_key(plot_trace) != "z"}


def axis_name(trace: go.Trace, letter: str) -> str:
    """Return the layout name of an array's axis: "yaxis2" for "y" of a trace on "y2"."""
    return f"{letter}axis{trace.get(f'{letter}axis', letter)[1:]}"


def value_key(trace: go.Trace) -> str:
    """Return the key of the array with a trace's values: "x", "y" or "z"."""
    if trace["type"] == "heatmap":
        return "z"
    return "x" if trace.get("orientation") == "h" else "y"


def _share_colour_range(trace_a: go.Trace, trace_b: go.Trace) -> go.Trace:
    if trace_a["type"] != "heatmap" or trace_b["type"] != "heatmap" or "zmin" not in trace_a or "zmin" not in trace_b:
        return trace_a
    return trace_a | {"zmin": min(trace_a["zmin"], trace_b["zmin"]), "zmax": max(trace_a["zmax"], trace_b["zmax"])}


def _share_axis_range(
    axis: str, layout: Mapping[str, Any], other_traces: Sequence[go.Trace], other_layout: Mapping[str, Any]
) -> Mapping[str, Any]:
    axis_a, axis_b = layout.get(axis, {}), other_layout.get(axis, {})
    if axis_a.get("type") != axis_b.get("type"):
        return axis_a
    if "range" in axis_a and "range" in axis_b:
        (first, last), ends = axis_a["range"], sorted([*axis_a["range"], *axis_b["range"]])
        return {**axis_a, "range": [ends[0], ends[-1]] if first <= last else [ends[-1], ends[0]]}
    axis_traces = [
        plot_trace
        for plot_trace in other_traces
        if axis_name(plot_trace, axis[0]) == axis and value_key(plot_trace) == axis[0]
    ]
    values = [np.ravel(np.asarray(plot_trace[axis[0]], float)) for plot_trace in axis_traces]
    finite = np.concatenate([array[np.isfinite(array)] for array in values]) if values else np.array([])
    if "range" in axis_a or not finite.size or axis_a.get("type") == "category":
        return axis_a
    return {**axis_a, "autorangeoptions": {"include": [float(finite.min()), float(finite.max())]}}
