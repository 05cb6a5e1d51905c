"""Heatmaps of many cells, as few bytes: Plotly would take half a second for a million of them, an image takes none."""

import base64
from typing import Any

import numpy as np

from explorer.views import graph_objects as go

MOST_CELLS = 1 << 17  # that Plotly draws
STEPS = (1 << 16) - 2  # between the least and the largest value; one more stands for none
WRITTEN = ("text", "hovertext", "colorscale", "customdata")  # what an image has not


def compact(figure: go.Figure) -> go.Figure:
    """The figure, whose heatmap has `cells` in the place of `z` where these are many: shares of 1 in 16 bits, other
    numbers as they are, of a triangle the lower half alone."""
    traces, layout = figure.parts
    if len(traces) != 1 or traces[0].get("type") != "heatmap" or "changes" in layout["meta"]:
        return figure
    (trace,) = traces
    z = trace.get("z")
    if not isinstance(z, np.ndarray) or z.size <= MOST_CELLS or any(trace.get(name) is not None for name in WRITTEN):
        return figure
    labels = {axis: np.asarray(trace[axis]).tolist() for axis in "xy" if trace.get(axis) is not None}
    rest = {name: value for name, value in trace.items() if name != "z"}
    return figure.remade([rest | labels | {"cells": packed(z)}], layout)


def packed(z: np.ndarray) -> dict[str, Any]:
    rows, columns = z.shape
    lower = rows == columns and bool(np.isnan(z[np.triu_indices(rows, 1)]).all())
    some = z[np.tril_indices(rows)] if lower else z.reshape(-1)
    least, most = (float(find(some, initial=0)) for find in (np.nanmin, np.nanmax))
    if least >= -1 and most <= 1:
        shares = np.nan_to_num((some - least) / ((most - least) or 1), nan=(STEPS + 1) / STEPS)
        data, kind = np.rint(shares * STEPS).astype("<u2"), "u2"
    else:
        data, kind = some.astype("<f4"), "f4"
    text = base64.b64encode(data).decode("ascii")
    return {"rows": rows, "columns": columns, "lower": lower, "least": least, "most": most, "kind": kind, "data": text}
