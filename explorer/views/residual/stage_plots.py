"""Figures that compare stages of the residual stream: cosines between them, and outlier dimensions."""

import numpy as np

from explorer.analysis.residual import find_outlier_dimensions, residual_stages, stage_similarities
from explorer.explain.notation import format_number, quote_token
from explorer.tracing.trace import Trace
from explorer.translations import _
from explorer.views import graph_objects as go
from explorer.views.stage_axes import click_layers, stage_axis
from explorer.views.style import figure


def stage_cosines(trace: Trace, query: int = 0) -> go.Figure:
    """Draw the cosines between one token's stream at any two stages."""
    labels = residual_stages(trace)
    names = [stage.name for stage in labels]
    cosines = stage_similarities(trace, query)
    axis = stage_axis(labels, max_labels=26)
    return figure(
        go.Heatmap(
            x=names,
            y=names,
            z=cosines,
            zmin=-1,
            zmax=1,
            autocolorscale=True,
            customdata=click_layers(labels, len(labels)),
            hovertemplate=_("%{y} and %{x}<br>cosine %{z:.3f}<extra></extra>"),
            colorbar={"title": {"text": _("cosine"), "side": "right"}},
        ),
        alt=_(
            "Cosines between {stages} stages of the stream at {token}: {cosine} between the embedding and the last.",
            stages=len(labels),
            token=quote_token(trace.tokens[query]),
            cosine=format_number(cosines[0, -1]),
        ),
        xaxis={**axis, "autorange": True, "tickangle": -60},
        yaxis=axis,
    )


def outlier_dimensions(trace: Trace) -> go.Figure:
    """Draw the dimensions whose mean magnitude is furthest above the median dimension's, by stage."""
    outlier_values = find_outlier_dimensions(trace)
    stage_list = residual_stages(trace)
    stage, column = np.unravel_index(outlier_values.ratios.argmax(), outlier_values.ratios.shape)
    return figure(
        go.Heatmap(
            x=[str(dimension) for dimension in outlier_values.dimensions],
            y=[stage_item.name for stage_item in stage_list],
            z=outlier_values.ratios,
            zmin=0,
            zmax=float(outlier_values.ratios.max()) or 1.0,
            autocolorscale=True,
            text=[[format_number(size) for size in row] for row in outlier_values.sizes],
            customdata=click_layers(stage_list, len(outlier_values.dimensions)),
            hovertemplate=_(
                "dimension %{x} at %{y}<br>mean size %{text}, %{z:.3g} × the median dimension's<extra></extra>"
            ),
            colorbar={"title": {"text": _("× the median dimension"), "side": "right"}},
        ),
        alt=_(
            "The {count} dimensions that stand out most: dimension {dimension} is {times} times as large as the median "
            "one at {stage}.",
            count=len(outlier_values.dimensions),
            dimension=outlier_values.dimensions[column],
            times=format_number(outlier_values.ratios[stage, column]),
            stage=stage_list[stage].name,
        ),
        xaxis={
            "type": "category",
            "title": {"text": _("dimension (the one that stands out most first)")},
            "tickangle": -45,
        },
        yaxis=stage_axis(stage_list),
    )
