"""Figures of the cosines between the vectors of two positions."""

import numpy as np

from explorer.analysis.positions import cosines_by_distance, position_cosines, sinusoidal_cosine
from explorer.explain.notation import format_number
from explorer.tracing.trace import Trace
from explorer.translations import _
from explorer.views import graph_objects as go
from explorer.views.style import EMBEDDING, RESIDUAL, SELECTED, figure, positions, token_axis

FAINT = "rgba(0, 158, 115, 0.4)"  # EMBEDDING


def cosine_map(trace: Trace, query: int, key: int) -> go.Figure:
    """Draw the cosine of the position vectors of any two positions; the chosen pair framed."""
    values, labels = position_cosines(trace), positions(trace.tokens)
    fig = figure(
        go.Heatmap(
            x=labels,
            y=labels,
            z=values,
            zmin=-1,
            zmax=1,
            autocolorscale=True,
            hovertemplate=_("query %{y} and key %{x}<br>cosine %{z:.3f}<extra></extra>"),
            colorbar={"title": {"text": _("cosine"), "side": "right"}},
        ),
        alt=_(
            "Cosines between the vectors of {positions} positions: {cosine} between those of {query} and {key}.",
            positions=len(values),
            cosine=format_number(values[query, key]),
            query=query,
            key=key,
        ),
        xaxis={**token_axis(trace.tokens, _("key’s position"), max_labels=24), "tickangle": -60},
        yaxis={**token_axis(trace.tokens, _("query’s position"), max_labels=24), "autorange": "reversed"},
    )
    corners = {"x0": key - 0.5, "x1": key + 0.5, "y0": query - 0.5, "y1": query + 0.5}
    fig.add_shape(type="rect", **corners, line={"color": SELECTED, "width": 3})
    return fig


def cosine_by_distance(trace: Trace, query: int, key: int) -> go.Figure:
    """Draw the cosines of position vectors by distance: the mean, and the band of all pairs.

    For sinusoidal vectors the cosine depends on the distance alone.
    """
    cosine_range, config = cosines_by_distance(trace), trace.config
    distances = np.arange(len(trace))
    hover = {"hoverinfo": "skip", "showlegend": False}
    edge = {"mode": "lines", "line": {"width": 0}, **hover}
    traces = [
        go.Scatter(x=distances, y=cosine_range.minimum, **edge),
        go.Scatter(x=distances, y=cosine_range.maximum, fill="tonexty", fillcolor=FAINT, **edge),
        go.Scatter(
            x=distances,
            y=cosine_range.mean,
            mode="lines+markers",
            line={"color": EMBEDDING},
            name=_("mean over this run (band: all pairs)"),
            text=[
                _(
                    "from {least} to {most} over {pairs} pairs",
                    least=format_number(minimum),
                    most=format_number(maximum),
                    pairs=len(trace) - distance,
                )
                for distance, (minimum, maximum) in enumerate(
                    zip(cosine_range.minimum, cosine_range.maximum, strict=True)
                )
            ],
            hovertemplate=_("distance %{x}<br>mean cosine %{y:.3f}, %{text}<extra></extra>"),
            showlegend=True,
        ),
    ]
    query_distance = query - key
    if config.position == "sinusoidal":
        far = np.arange(config.context_length)
        line = {"color": RESIDUAL, "width": 1, "dash": "dot"}
        formula = {"x": far, "y": sinusoidal_cosine(far, config.d_model), "name": _("2/D · Σ cos(distance · ω)")}
        traces.append(go.Scatter(**formula, mode="lines", line=line, hoverinfo="skip", showlegend=True))
    fig = figure(
        traces,
        alt=_(
            "Cosines by distance: {cosine} at the {distance} positions between the chosen two; they differ by at most "
            "{most} between pairs as far apart.",
            cosine=format_number(cosine_range.mean[query_distance]),
            distance=query_distance,
            most=format_number((cosine_range.maximum - cosine_range.minimum).max()),
        ),
        xaxis={"title": {"text": _("distance in tokens")}, "showgrid": False},
        yaxis={"title": {"text": _("cosine")}},
    )
    fig.add_vline(query_distance, line={"color": SELECTED, "width": 1})
    return fig
