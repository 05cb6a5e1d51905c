"""Compact encoding of heatmaps of many cells as images: Plotly would take half a second for a million of them."""

import base64
from typing import Any

import numpy as np

from explorer.views import graph_objects as go

MAX_CELLS = 1 << 17  # that Plotly draws
NUM_LEVELS = (1 << 16) - 2  # levels between minimum and maximum; one more encodes NaN
UNSUPPORTED_FIELDS = ("text", "hovertext", "colorscale", "customdata")  # fields that an image cannot show


def encode_large_heatmap(figure: go.Figure) -> go.Figure:
    """Return the figure with a large heatmap's `z` replaced by encoded `cells`, or unchanged.

    Values between -1 and 1 have 16 bits, others are float32; of a lower triangular heatmap only the lower half is
    sent.
    """
    traces, layout = figure.traces_and_layout
    if len(traces) != 1 or traces[0].get("type") != "heatmap" or "changes" in layout["meta"]:
        return figure
    (trace,) = traces
    z = trace.get("z")
    if (
        not isinstance(z, np.ndarray)
        or z.size <= MAX_CELLS
        or any(trace.get(name) is not None for name in UNSUPPORTED_FIELDS)
    ):
        return figure
    labels = {axis: np.asarray(trace[axis]).tolist() for axis in "xy" if trace.get(axis) is not None}
    rest = {name: value for name, value in trace.items() if name != "z"}
    return figure.replace_data([rest | labels | {"cells": encode_cells(z)}], layout)


def encode_cells(z: np.ndarray) -> dict[str, Any]:
    rows, columns = z.shape
    lower = rows == columns and bool(np.isnan(z[np.triu_indices(rows, 1)]).all())
    values = z[np.tril_indices(rows)] if lower else z.reshape(-1)
    minimum, maximum = (float(reduce(values, initial=0)) for reduce in (np.nanmin, np.nanmax))
    if minimum >= -1 and maximum <= 1:
        shares = np.nan_to_num((values - minimum) / ((maximum - minimum) or 1), nan=(NUM_LEVELS + 1) / NUM_LEVELS)
        data, kind = np.rint(shares * NUM_LEVELS).astype("<u2"), "u2"
    else:
        data, kind = values.astype("<f4"), "f4"
    text = base64.b64encode(data).decode("ascii")
    return {
        "rows": rows,
        "columns": columns,
        "lower": lower,
        "least": minimum,
        "most": maximum,
        "kind": kind,
        "data": text,
    }
