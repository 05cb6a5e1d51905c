"""A heatmap of the vectors that are added for positions."""

import numpy as np

from explorer.explain.notation import format_number
from explorer.tracing.trace import Trace
from explorer.translations import _
from explorer.views import graph_objects as go
from explorer.views.style import SELECTED, figure, positions, token_axis


def position_vector_map(trace: Trace, query: int, dim: int | None = None) -> go.Figure:
    """Draw the vector added at every position of the run."""
    values = trace["position_embed"]  # (T, D)
    largest = float(np.abs(values).max()) or 1.0
    fig = figure(
        go.Heatmap(
            y=positions(trace.tokens),
            z=values,
            zmin=-largest,
            zmax=largest,
            autocolorscale=True,
            hovertemplate=_("position %{y}, dimension %{x}<br>%{z:.4g}<extra></extra>"),
        ),
        alt=_(
            "What is added at each of {positions} positions, by {dimensions} dimensions: {least} to {most}.",
            positions=len(values),
            dimensions=values.shape[1],
            least=format_number(values.min()),
            most=format_number(values.max()),
        ),
        xaxis={"title": {"text": _("dimension")}, "showgrid": False},
        yaxis={**token_axis(trace.tokens, _("position"), max_labels=24), "autorange": "reversed"},
    )
    fig.add_hrect(query - 0.5, query + 0.5, line={"color": SELECTED, "width": 1})
    if dim is not None and dim < values.shape[1]:
        corners = {"x0": dim - 0.5, "x1": dim + 0.5, "y0": query - 0.5, "y1": query + 0.5}
        fig.add_shape(type="rect", **corners, line={"color": SELECTED, "width": 3})
    return fig
