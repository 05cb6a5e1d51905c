"""Figures of the residual stream: norms, directions of what is added, cosines of its stages, outlier dimensions."""

import numpy as np

from explorer.analysis.residual import (
    find_outlier_dimensions,
    residual_norms,
    residual_norms_by_stage,
    residual_stages,
    stage_similarities,
    sublayer_updates,
)
from explorer.architecture.residual_stream import norms_on_residual_stream
from explorer.explain.notation import format_number, quote_token
from explorer.tracing.trace import Trace
from explorer.translations import _
from explorer.views import graph_objects as go
from explorer.views.style import (
    ATTENTION,
    FEED_FORWARD,
    RESIDUAL,
    SELECTED,
    click_layers,
    figure,
    label,
    positions,
    stage_axis,
    sublayer_axis,
    token_axis,
)

MAX_RELATIVE_NORM = 2  # lengths, in multiples of the longest median token's, at which colours end


def stream_norm_map(trace: Trace, query: int | None = None) -> go.Figure:
    """Draw ‖stream‖ of every token (column) at every stage (row); the query framed.

    The colour scale ends at twice the largest median norm, because in some models one token's norm dwarfs all
    others.
    """
    stage_list = residual_stages(trace)
    values = residual_norms_by_stage(trace)  # (S, T)
    max_norm = MAX_RELATIVE_NORM * float(np.median(values, axis=1).max())
    largest_norm = float(values.max())
    measure = _("length ‖x‖₂ (longer ones alike)") if largest_norm > max_norm else _("length ‖x‖₂")
    fig = figure(
        go.Heatmap(
            x=positions(trace.tokens),
            y=[stage.name for stage in stage_list],
            z=values,
            zmin=0,
            zmax=min(max_norm, largest_norm) or 1.0,
            autocolorscale=True,
            customdata=click_layers(stage_list, len(trace)),
            hovertemplate=_("token %{x}, stream at %{y}<br>length %{z:.4g}<extra></extra>"),
            colorbar={"title": {"text": measure, "side": "right"}},
        ),
        alt=_(
            "Length of the residual stream of {tokens} tokens at {stages} stages, {least} to {most}; in the end "
            "longest at {token}.",
            tokens=len(trace),
            stages=len(stage_list),
            least=format_number(values.min()),
            most=format_number(largest_norm),
            token=quote_token(trace.tokens[values[-1].argmax()]),
        ),
        xaxis={**token_axis(trace.tokens, _("token")), "tickangle": -60},
        yaxis=stage_axis(stage_list),
    )
    if query is not None:
        fig.add_vrect(query - 0.5, query + 0.5, line={"color": SELECTED, "width": 2})
    return fig


def stream_norm_plot(trace: Trace, query: int = 0) -> go.Figure:
    """Draw the norm of the stream after each sublayer, at the query and at the median token, and of each update."""
    norms_by_stage = residual_norms(trace)
    indices = np.arange(len(norms_by_stage.stages))
    hover = "%{text}<br>%{y:.4g}<extra></extra>"
    measure = _("length ‖x‖₂ before its norm") if norms_on_residual_stream(trace.config) else _("length ‖x‖₂")
    is_first_of_pair = norms_by_stage.stage_indices == np.roll(
        norms_by_stage.stage_indices, -1
    )  # the first of two that are added at once
    bar_offsets = (
        0.2
        * (is_first_of_pair | (norms_by_stage.stage_indices == np.roll(norms_by_stage.stage_indices, 1)))
        * np.where(is_first_of_pair, -1, 1)
    )
    traces = [
        go.Scatter(
            x=indices,
            y=norms_by_stage.median,
            text=norms_by_stage.stages,
            name=_("stream, median token"),
            mode="lines",
            line={"color": RESIDUAL, "dash": "dot"},
            hovertemplate=hover,
        ),
        go.Scatter(
            x=indices,
            y=norms_by_stage.stream[:, query],
            text=norms_by_stage.stages,
            name=_("stream at {token}", token=label(trace.tokens[query])),
            mode="lines+markers",
            line={"color": SELECTED},
            hovertemplate=hover,
        ),
        go.Bar(
            x=norms_by_stage.stage_indices + bar_offsets,
            width=0.7 if not bar_offsets.any() else 0.35,
            y=norms_by_stage.updates[:, query],
            text=norms_by_stage.names,
            textposition="none",
            name=_("added by attention (blue), feed-forward (orange)"),
            marker={"color": [ATTENTION, FEED_FORWARD] * trace.config.num_layers},
            hovertemplate=_("%{text} adds a vector of length %{y:.4g}<extra></extra>"),
            showlegend=False,
        ),
    ]
    return figure(
        traces,
        alt=_(
            "Length of the residual stream at {token}: {first} at the embedding, {last} after the last block.",
            token=quote_token(trace.tokens[query]),
            first=format_number(norms_by_stage.stream[0, query]),
            last=format_number(norms_by_stage.stream[-1, query]),
        ),
        xaxis=sublayer_axis(norms_by_stage.stages),
        yaxis={"title": {"text": measure}, "rangemode": "tozero"},
        bargap=0.3,
    )


def update_cosines(trace: Trace, query: int = 0) -> go.Figure:
    """Draw the cosine of each sublayer's update with the stream that it is added to."""
    stream_updates = sublayer_updates(trace, query)
    largest_index = int(np.abs(stream_updates.cosines).argmax())
    return figure(
        go.Bar(
            x=np.arange(len(stream_updates.names)),
            y=stream_updates.cosines,
            customdata=np.arange(len(stream_updates.names)) // 2,
            text=[
                _(
                    "{name}: length {length} onto a stream of {before}",
                    name=name,
                    length=format_number(length),
                    before=format_number(before),
                )
                for name, length, before in zip(
                    stream_updates.names, stream_updates.norms, stream_updates.before, strict=True
                )
            ],
            textposition="none",
            marker={"color": [ATTENTION, FEED_FORWARD] * trace.config.num_layers},
            hovertemplate=_("%{text}<br>cosine %{y:.3f}<extra></extra>"),
        ),
        alt=_(
            "Cosine of each sublayer's update with the stream at {token}: furthest from 0 is {name} with {cosine}.",
            token=quote_token(trace.tokens[query]),
            name=stream_updates.names[largest_index],
            cosine=format_number(stream_updates.cosines[largest_index]),
        ),
        xaxis=sublayer_axis(stream_updates.names),
        yaxis={"title": {"text": _("cosine (against ← 0 → along)")}, "range": [-1, 1]},
        bargap=0.3,
        hovermode="x",  # a short bar is hard to hit
    )


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
