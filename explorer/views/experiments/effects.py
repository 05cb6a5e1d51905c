"""Figures of an intervention's effects on the stream, on other heads and on each token's surprisal."""

import numpy as np

from explorer.analysis.intervention_effects import (
    attention_shift,
    comparison_rounding_threshold,
    relative_stream_change,
    surprisal_change,
)
from explorer.analysis.next_token import surprisal
from explorer.analysis.residual import residual_stages
from explorer.explain.notation import format_number, quote_token
from explorer.tracing.comparison import Comparison
from explorer.translations import _
from explorer.views import graph_objects as go
from explorer.views.intervention_effects import (
    annotate_empty,
    describe_interventions,
    format_difference,
    format_largest_difference,
)
from explorer.views.stage_axes import click_layers, stage_axis
from explorer.views.style import SELECTED, figure, positions, token_axis

MAX_RELATIVE_CHANGE = 1.0  # end of the colour scale, as a fraction of the stream's norm


def residual_change_map(comparison: Comparison, query: int | None = None) -> go.Figure:
    """Draw the relative change of every token's (column) residual stream at every stage (row)."""
    trace = comparison.trace
    stage_list, values = residual_stages(trace), relative_stream_change(comparison)  # (S, T)
    largest, limit = float(values.max()), comparison_rounding_threshold(comparison)
    measure = _("× its length (larger ones alike)") if largest > MAX_RELATIVE_CHANGE else _("× its length")
    fig = figure(
        go.Heatmap(
            x=positions(trace.tokens),
            y=[stage.name for stage in stage_list],
            z=values,
            zmin=0,
            zmax=min(largest, MAX_RELATIVE_CHANGE) if largest > limit else MAX_RELATIVE_CHANGE,
            autocolorscale=True,
            customdata=click_layers(stage_list, len(trace)),
            hovertemplate=_("token %{x}, stream at %{y}<br>moved by %{z:.3g} × its length<extra></extra>"),
            colorbar={"title": {"text": measure, "side": "right"}},
        ),
        alt=_(
            "How far {changes} moved the residual stream of {tokens} tokens at {stages} stages: by {most} times its "
            "length; in the end most at {token}.",
            changes=describe_interventions(comparison.trace),
            tokens=len(trace),
            stages=len(stage_list),
            most=format_largest_difference(largest, limit, trace.dtype),
            token=quote_token(trace.tokens[values[-1].argmax()]),
        ),
        xaxis={**token_axis(trace.tokens, _("token"), max_labels=24), "tickangle": -60},
        yaxis=stage_axis(stage_list),
    )
    if query is not None:
        fig.add_vrect(query - 0.5, query + 0.5, line={"color": SELECTED, "width": 2})
    if largest <= limit:
        none = _(
            "no vector moves as far as {dtype} can tell ({limit} × its length)",
            dtype=trace.dtype,
            limit=format_number(limit),
        )
        annotate_empty(fig, none)
    return fig


def attention_shift_map(comparison: Comparison, layer: int | None = None, head: int = 0) -> go.Figure:
    """Draw the share of every head's attention that moved; row = layer."""
    values = attention_shift(comparison)  # (L, H)
    largest_index, limit = np.unravel_index(values.argmax(), values.shape), comparison_rounding_threshold(comparison)
    fig = figure(
        go.Heatmap(
            z=values,
            zmin=0,
            zmax=float(values.max()) if values.max() > limit else 1.0,
            autocolorscale=True,
            text=[[f"{value:.2f}" for value in row] for row in values],
            texttemplate="%{text}" if values.shape[1] <= 12 else None,
            hovertemplate=_("layer %{y} head %{x}<br>%{z:.3g} of its attention moved<extra></extra>"),
            xgap=1,
            ygap=1,
            colorbar={"title": {"text": _("share of attention moved"), "side": "right"}},
        ),
        alt=_(
            "Share of each head's attention that went to other tokens by {changes}: most, {share}, of layer {layer} "
            "head {head}.",
            changes=describe_interventions(comparison.trace),
            share=format_difference(values[largest_index], limit, comparison.trace.dtype),
            layer=largest_index[0],
            head=largest_index[1],
        ),
        xaxis={"title": {"text": _("head")}, "dtick": 1, "showgrid": False},
        yaxis={"title": {"text": _("layer")}, "dtick": 1, "showgrid": False, "autorange": "reversed"},
    )
    if layer is not None:
        corners = {"x0": head - 0.5, "x1": head + 0.5, "y0": layer - 0.5, "y1": layer + 0.5}
        fig.add_shape(type="rect", **corners, line={"color": SELECTED, "width": 3})
    if values.max() <= limit:
        none = _(
            "no head looks elsewhere by as much as {dtype} can tell ({limit} of its attention)",
            dtype=comparison.trace.dtype,
            limit=format_number(limit),
        )
        annotate_empty(fig, none)
    return fig


def surprisal_change_bars(comparison: Comparison, query: int | None = None) -> go.Figure:
    """Draw the change of each token's surprisal in bits."""
    trace = comparison.trace
    values = surprisal_change(comparison)  # (T,)
    bits = [surprisal(run) for run in reversed(comparison.runs)]
    names = positions(trace.tokens)
    title = _("surprisal, changed − unchanged, bits")
    alt = _("Only one token, which nothing precedes: no surprisal.")
    limits = comparison_rounding_threshold(comparison) * np.maximum(1, bits[0])
    nothing = len(trace) > 1 and bool((np.abs(values[1:]) <= limits[1:]).all())
    if len(trace) > 1:
        before, after = (format_number(np.nanmean(run)) for run in bits)
        title = _("surprisal, changed − unchanged, bits<br>mean {before} → {after}", before=before, after=after)
        worst = 1 + int(np.abs(values[1:]).argmax())  # the first NaN, if any
        alt = _(
            "Change of each token's surprisal by {changes}: mean {before} → {after} bits a token; most, {most}, of "
            "{token} at {position}.",
            changes=describe_interventions(comparison.trace),
            before=before,
            after=after,
            most=format_difference(values[worst], limits[worst], trace.dtype),
            token=quote_token(trace.tokens[worst]),
            position=worst,
        )
    hover_texts = [
        _("{token}: {before} → {after} bits", token=name, before=format_number(before), after=format_number(after))
        for name, before, after in zip(names[1:], *(run[1:] for run in bits), strict=True)
    ]
    fig = figure(
        go.Bar(
            x=names,
            y=values,
            text=[_("{token}: nothing precedes it", token=names[0]), *hover_texts],
            textposition="none",
            hovertemplate="%{text}<extra></extra>",
        ),
        alt=alt,
        xaxis={**token_axis(trace.tokens, _("token")), "tickangle": -60, "range": [-0.5, len(trace) - 0.5]},
        yaxis={"title": {"text": title}} | ({"range": [-1, 1]} if nothing else {}),
        bargap=0.15,
        hovermode="x",  # a short bar is hard to hit
    )
    if query is not None:
        column = {"x0": query - 0.5, "x1": query + 0.5, "y0": 0, "y1": 1, "yref": "paper"}
        fig.add_shape(type="rect", **column, line={"color": SELECTED, "width": 1})
    if nothing:
        none = _(
            "no token is harder or easier by as much as {dtype} can tell ({limit} bits)",
            dtype=trace.dtype,
            limit=format_number(limits[worst]),
        )
        annotate_empty(fig, none)
    return fig
