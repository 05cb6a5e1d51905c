"""The residual view's comparisons of stages: which way the stream points at each, and which dimensions stand out."""

import numpy as np

from explorer.analysis.residual import outliers, similarity, stages
from explorer.explain.notation import number, quoted
from explorer.language import _
from explorer.tracing.trace import Trace
from explorer.views import graph_objects as go
from explorer.views.stage_axes import layers_of, stage_axis
from explorer.views.style import figure


def stage_by_stage(trace: Trace, query: int = 0) -> go.Figure:
    """Cosines between one token's stream at any two stages."""
    places = stages(trace)
    names = [stage.name for stage in places]
    cosines = similarity(trace, query)
    axis = stage_axis(places, most=26)
    return figure(
        go.Heatmap(
            x=names,
            y=names,
            z=cosines,
            zmin=-1,
            zmax=1,
            autocolorscale=True,
            customdata=layers_of(places, len(places)),
            hovertemplate=_("%{y} and %{x}<br>cosine %{z:.3f}<extra></extra>"),
            colorbar={"title": {"text": _("cosine"), "side": "right"}},
        ),
        alt=_(
            "Cosines between {stages} stages of the stream at {token}: {cosine} between the embedding and the last.",
            stages=len(places),
            token=quoted(trace.tokens[query]),
            cosine=number(cosines[0, -1]),
        ),
        xaxis={**axis, "autorange": True, "tickangle": -60},
        yaxis=axis,
    )


def standing_out(trace: Trace) -> go.Figure:
    """The dimensions whose mean size over tokens is furthest above the median dimension's, by stage."""
    found = outliers(trace)
    places = stages(trace)
    stage, at = np.unravel_index(found.times.argmax(), found.times.shape)
    return figure(
        go.Heatmap(
            x=[str(dimension) for dimension in found.dimensions],
            y=[place.name for place in places],
            z=found.times,
            zmin=0,
            zmax=float(found.times.max()) or 1.0,
            autocolorscale=True,
            text=[[number(size) for size in row] for row in found.sizes],
            customdata=layers_of(places, len(found.dimensions)),
            hovertemplate=_(
                "dimension %{x} at %{y}<br>mean size %{text}, %{z:.3g} × the median dimension's<extra></extra>"
            ),
            colorbar={"title": {"text": _("× the median dimension"), "side": "right"}},
        ),
        alt=_(
            "The {count} dimensions that stand out most: dimension {dimension} is {times} times as large as the median "
            "one at {stage}.",
            count=len(found.dimensions),
            dimension=found.dimensions[at],
            times=number(found.times[stage, at]),
            stage=places[stage].name,
        ),
        xaxis={
            "type": "category",
            "title": {"text": _("dimension (the one that stands out most first)")},
            "tickangle": -45,
        },
        yaxis=stage_axis(places),
    )
