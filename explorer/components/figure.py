"""A Plotly figure."""

from collections.abc import Mapping

import plotly.graph_objects as go

from explorer.components.assets import plotly_script
from explorer.components.widget import Widget


class Figure(Widget):
    """Draws a `go.Figure`; keeps its zoom when redrawn, takes the page's theme, and turns clicks into selections.

    Args:
        selects: "x", "y" or "customdata" of a clicked point -> the field of the state it sets.
        height, min_plot_width: pixels; in less width it scrolls sideways.
    """

    def __init__(
        self, *, selects: Mapping[str, str] | None = None, height: int = 360, min_plot_width: int = 0, **kwargs
    ):
        html = f'<div class="plot" role="img" style="height:{height}px;min-width:{min_plot_width}px"></div>'
        super().__init__(None, html=html, scripts=plotly_script(), selects=dict(selects or {}), height=height, **kwargs)

    def postprocess(self, value: go.Figure | None) -> str | None:
        """The figure as JSON, without its template: the page has the template of each theme."""
        if value is None:
            return None
        value = go.Figure(value)
        value.layout.template = None
        return value.to_json()
