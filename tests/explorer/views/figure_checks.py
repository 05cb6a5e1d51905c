"""Checks that hold for every figure of every view."""

import json

import numpy as np

from explorer.state.selection import Selection
from explorer.tracing.trace import Trace
from explorer.views import graph_objects as go
from explorer.views.overview.map_parts import ModelMap
from explorer.views.overview.whole_model import WholeModelFigure
from explorer.views.view import HeadHeatmaps, HeadTable
from explorer.web.browser_api.page_contents import figure_payload
from explorer.web.widgets.figure import HeadTableWidget, ModelMapWidget, WholeModelWidget
from tests.panels import PANELS
from tests.plotly_points import collect_numbers
from tests.sample_models import capture_edited_style

FIGURES = [name for name, (_, panel) in PANELS.items() if panel.kind == "figure"]


def edited_run(name: str, style: str, length: int = 12) -> Trace:
    return capture_edited_style(style, length)


def extreme_selections(trace: Trace) -> list[Selection]:
    """Return extreme selections."""
    most = 10**8
    corners = [
        Selection(),
        Selection(layer=most, head=most, query=most, key=most, tap="logits", dim=most),
        Selection(layer=most, query=most, key=0, tap="blocks.1.attn.pattern", dim=most),
        Selection(head=most, query=len(trace) // 2, key=len(trace) // 2, tap="blocks.0.ffn.hidden", dim=3),
    ]
    return list(dict.fromkeys(selection.clamp_to_trace(trace) for selection in corners))


def texts(value) -> list[str]:
    """Return all strings in a JSON value except the alternative text, which Plotly does not interpret."""
    if isinstance(value, dict):
        return [text for name, part in value.items() if name not in ("alt", "bdata") for text in texts(part)]
    if isinstance(value, list):
        return [text for part in value for text in texts(part)]
    return [value] if isinstance(value, str) else []


def assert_valid_figure(figure, panel):
    """Check that a figure can be sent, has an alternative text and is of its panel's type."""
    if panel.kind == "head_grid":
        assert isinstance(figure, HeadHeatmaps)
        assert figure.alt.strip()
        values = np.asarray(figure.values)
        assert ((values >= 0) & (values <= 1)).all()
    elif panel.kind == "head_table":
        assert isinstance(figure, HeadTable)
        assert figure.alt.strip()
        assert all(column.label.strip() and column.description.strip() for column in figure.columns)
        assert json.dumps(HeadTableWidget.pack(figure), allow_nan=False)
    elif panel.kind == "model_map":
        assert isinstance(figure, ModelMap)
        assert figure.alt.strip()
        assert json.dumps(ModelMapWidget.pack(figure), allow_nan=False)
    elif panel.kind == "whole_model":
        assert isinstance(figure, WholeModelFigure)
        assert figure.alt.strip()
        assert json.dumps(WholeModelWidget.pack(figure), allow_nan=False)
    else:
        assert isinstance(figure, go.Figure)
        assert json.loads(figure.to_json())["layout"]["meta"]["alt"].strip()


def figure_json(figure) -> str:
    """Return the JSON that the browser receives; faster than Plotly's serializer, which validates its input."""
    return json.dumps(
        list(map(json.loads, figure_payload(figure))) if isinstance(figure, go.Figure) else figure_payload(figure)
    )


def figure_numbers(figure) -> list[float]:
    """Return all numbers in the figure's JSON, in order; numbers inside texts do not count."""
    return collect_numbers(json.loads(figure_json(figure)))
