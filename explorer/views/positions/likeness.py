"""The Positions view's pictures of how alike the vectors of two positions are."""

import numpy as np

from explorer.analysis.positions import by_distance, cosine_of_waves, cosines
from explorer.explain.notation import number
from explorer.language import _
from explorer.tracing.trace import Trace
from explorer.views import graph_objects as go
from explorer.views.style import EMBEDDING, RESIDUAL, SELECTED, figure, positions, token_axis

FAINT = "rgba(0, 158, 115, 0.4)"  # EMBEDDING


def alike(trace: Trace, query: int, key: int) -> go.Figure:
    """The cosine of what is added at any two positions; a frame around the chosen pair."""
    found, places = cosines(trace), positions(trace.tokens)
    fig = figure(
        go.Heatmap(
            x=places,
            y=places,
            z=found,
            zmin=-1,
            zmax=1,
            autocolorscale=True,
            hovertemplate=_("query %{y} and key %{x}<br>cosine %{z:.3f}<extra></extra>"),
            colorbar={"title": {"text": _("cosine"), "side": "right"}},
        ),
        alt=_(
            "Cosines between the vectors of {positions} positions: {cosine} between those of {query} and {key}.",
            positions=len(found),
            cosine=number(found[query, key]),
            query=query,
            key=key,
        ),
        xaxis={**token_axis(trace.tokens, _("key’s position"), most=24), "tickangle": -60},
        yaxis={**token_axis(trace.tokens, _("query’s position"), most=24), "autorange": "reversed"},
    )
    corners = {"x0": key - 0.5, "x1": key + 0.5, "y0": query - 0.5, "y1": query + 0.5}
    fig.add_shape(type="rect", **corners, line={"color": SELECTED, "width": 3})
    return fig


def by_distances(trace: Trace, query: int, key: int) -> go.Figure:
    """The same cosines by distance: of waves one number a distance, wherever the two stand."""
    found, config = by_distance(trace), trace.config
    across = np.arange(len(trace))
    hover = {"hoverinfo": "skip", "showlegend": False}
    edge = {"mode": "lines", "line": {"width": 0}, **hover}
    traces = [
        go.Scatter(x=across, y=found.least, **edge),
        go.Scatter(x=across, y=found.most, fill="tonexty", fillcolor=FAINT, **edge),
        go.Scatter(
            x=across,
            y=found.mean,
            mode="lines+markers",
            line={"color": EMBEDDING},
            name=_("mean over this run (band: all pairs)"),
            text=[
                _(
                    "from {least} to {most} over {pairs} pairs",
                    least=number(least),
                    most=number(most),
                    pairs=len(trace) - distance,
                )
                for distance, (least, most) in enumerate(zip(found.least, found.most, strict=True))
            ],
            hovertemplate=_("distance %{x}<br>mean cosine %{y:.3f}, %{text}<extra></extra>"),
            showlegend=True,
        ),
    ]
    here = query - key
    if config.position == "sinusoidal":
        far = np.arange(config.context_length)
        line = {"color": RESIDUAL, "width": 1, "dash": "dot"}
        formula = {"x": far, "y": cosine_of_waves(far, config.d_model), "name": _("2/D · Σ cos(distance · ω)")}
        traces.append(go.Scatter(**formula, mode="lines", line=line, hoverinfo="skip", showlegend=True))
    fig = figure(
        traces,
        alt=_(
            "Cosines by distance: {cosine} at the {distance} positions between the chosen two; they differ by at most "
            "{most} between pairs as far apart.",
            cosine=number(found.mean[here]),
            distance=here,
            most=number((found.most - found.least).max()),
        ),
        xaxis={"title": {"text": _("distance in tokens")}, "showgrid": False},
        yaxis={"title": {"text": _("cosine")}},
    )
    fig.add_vline(here, line={"color": SELECTED, "width": 1})
    return fig
