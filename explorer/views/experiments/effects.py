"""The experiments' pictures of where a change goes: through the stream, to other heads, to each token of the text."""

import numpy as np

from explorer.analysis.change import attention_moved, resolution, stream_change, surprisal_change
from explorer.analysis.next_token import surprisal
from explorer.analysis.residual import stages
from explorer.explain.notation import number, quoted
from explorer.language import _
from explorer.tracing.comparison import Comparison
from explorer.views import graph_objects as go
from explorer.views.change import say, told, told_most, words
from explorer.views.stage_axes import layers_of, stage_axis
from explorer.views.style import SELECTED, figure, positions, token_axis

MOST = 1.0  # share of the stream's own length at which colours end


def spread(comparison: Comparison, query: int | None = None) -> go.Figure:
    """How far the residual stream of every token (column) moved at every stage (row); a frame around the chosen one."""
    trace = comparison.trace
    places, values = stages(trace), stream_change(comparison)  # (S, T)
    largest, limit = float(values.max()), resolution(comparison)
    measure = _("× its length (larger ones alike)") if largest > MOST else _("× its length")
    fig = figure(
        go.Heatmap(
            x=positions(trace.tokens),
            y=[stage.name for stage in places],
            z=values,
            zmin=0,
            zmax=min(largest, MOST) if largest > limit else MOST,
            autocolorscale=True,
            customdata=layers_of(places, len(trace)),
            hovertemplate=_("token %{x}, stream at %{y}<br>moved by %{z:.3g} × its length<extra></extra>"),
            colorbar={"title": {"text": measure, "side": "right"}},
        ),
        alt=_(
            "How far {changes} moved the residual stream of {tokens} tokens at {stages} stages: by {most} times its "
            "length; in the end most at {token}.",
            changes=words(comparison.trace),
            tokens=len(trace),
            stages=len(places),
            most=told_most(largest, limit, trace.dtype),
            token=quoted(trace.tokens[values[-1].argmax()]),
        ),
        xaxis={**token_axis(trace.tokens, _("token"), most=24), "tickangle": -60},
        yaxis=stage_axis(places),
    )
    if query is not None:
        fig.add_vrect(query - 0.5, query + 0.5, line={"color": SELECTED, "width": 2})
    if largest <= limit:
        none = _(
            "no vector moves as far as {dtype} can tell ({limit} × its length)", dtype=trace.dtype, limit=number(limit)
        )
        say(fig, none)
    return fig


def other_heads(comparison: Comparison, layer: int | None = None, head: int = 0) -> go.Figure:
    """How much of every head's attention went elsewhere; row = layer."""
    values = attention_moved(comparison)  # (L, H)
    most, limit = np.unravel_index(values.argmax(), values.shape), resolution(comparison)
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
            changes=words(comparison.trace),
            share=told(values[most], limit, comparison.trace.dtype),
            layer=most[0],
            head=most[1],
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
            limit=number(limit),
        )
        say(fig, none)
    return fig


def text_change(comparison: Comparison, query: int | None = None) -> go.Figure:
    """Token by token, by how many bits its surprisal changed: up where the change hurts."""
    trace = comparison.trace
    values = surprisal_change(comparison)  # (T,)
    bits = [surprisal(run) for run in reversed(comparison.runs)]
    names = positions(trace.tokens)
    title = _("surprisal, changed − unchanged, bits")
    alt = _("Only one token, which nothing precedes: no surprisal.")
    limits = resolution(comparison) * np.maximum(1, bits[0])
    nothing = len(trace) > 1 and bool((np.abs(values[1:]) <= limits[1:]).all())
    if len(trace) > 1:
        before, after = (number(np.nanmean(run)) for run in bits)
        title = _("surprisal, changed − unchanged, bits<br>mean {before} → {after}", before=before, after=after)
        worst = 1 + int(np.abs(values[1:]).argmax())  # of what is not a number the first
        alt = _(
            "Change of each token's surprisal by {changes}: mean {before} → {after} bits a token; most, {most}, of "
            "{token} at {position}.",
            changes=words(comparison.trace),
            before=before,
            after=after,
            most=told(values[worst], limits[worst], trace.dtype),
            token=quoted(trace.tokens[worst]),
            position=worst,
        )
    each = [
        _("{token}: {before} → {after} bits", token=name, before=number(before), after=number(after))
        for name, before, after in zip(names[1:], *(run[1:] for run in bits), strict=True)
    ]
    fig = figure(
        go.Bar(
            x=names,
            y=values,
            text=[_("{token}: nothing precedes it", token=names[0]), *each],
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
            limit=number(limits[worst]),
        )
        say(fig, none)
    return fig
