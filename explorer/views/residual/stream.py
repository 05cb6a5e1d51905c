"""The residual view's pictures of lengths and directions: of the stream, and of what is added to it."""

import numpy as np

from explorer.analysis.residual import residual_norms, stages, stream_lengths, updates
from explorer.architecture.stream import stream_norms
from explorer.explain.notation import number, quoted
from explorer.language import _
from explorer.tracing.trace import Trace
from explorer.views import graph_objects as go
from explorer.views.stage_axes import layers_of, stage_axis, sublayer_axis
from explorer.views.style import ATTENTION, FEED_FORWARD, RESIDUAL, SELECTED, figure, label, positions, token_axis

MOST_LENGTH = 2  # lengths, in multiples of the longest median token's, at which colours end


def lengths(trace: Trace, query: int | None = None) -> go.Figure:
    """‖stream‖ of every token (column) at every stage (row); a frame around the chosen token.

    In some models one token is so long that all others would look alike: colours end at twice the median token's.
    """
    places = stages(trace)
    values = stream_lengths(trace)  # (S, T)
    end = MOST_LENGTH * float(np.median(values, axis=1).max())
    longest = float(values.max())
    measure = _("length ‖x‖₂ (longer ones alike)") if longest > end else _("length ‖x‖₂")
    fig = figure(
        go.Heatmap(
            x=positions(trace.tokens),
            y=[stage.name for stage in places],
            z=values,
            zmin=0,
            zmax=min(end, longest) or 1.0,
            autocolorscale=True,
            customdata=layers_of(places, len(trace)),
            hovertemplate=_("token %{x}, stream at %{y}<br>length %{z:.4g}<extra></extra>"),
            colorbar={"title": {"text": measure, "side": "right"}},
        ),
        alt=_(
            "Length of the residual stream of {tokens} tokens at {stages} stages, {least} to {most}; in the end "
            "longest at {token}.",
            tokens=len(trace),
            stages=len(places),
            least=number(values.min()),
            most=number(longest),
            token=quoted(trace.tokens[values[-1].argmax()]),
        ),
        xaxis={**token_axis(trace.tokens, _("token")), "tickangle": -60},
        yaxis=stage_axis(places),
    )
    if query is not None:
        fig.add_vrect(query - 0.5, query + 0.5, line={"color": SELECTED, "width": 2})
    return fig


def norms(trace: Trace, query: int = 0) -> go.Figure:
    """Length of the residual stream after each sublayer, at one token and the median one, and of what each adds."""
    found = residual_norms(trace)
    across = np.arange(len(found.stages))
    hover = "%{text}<br>%{y:.4g}<extra></extra>"
    measure = _("length ‖x‖₂ before its norm") if stream_norms(trace.config) else _("length ‖x‖₂")
    beside = found.places == np.roll(found.places, -1)  # the first of two that are added at once
    apart = 0.2 * (beside | (found.places == np.roll(found.places, 1))) * np.where(beside, -1, 1)
    traces = [
        go.Scatter(
            x=across,
            y=found.median,
            text=found.stages,
            name=_("stream, median token"),
            mode="lines",
            line={"color": RESIDUAL, "dash": "dot"},
            hovertemplate=hover,
        ),
        go.Scatter(
            x=across,
            y=found.stream[:, query],
            text=found.stages,
            name=_("stream at {token}", token=label(trace.tokens[query])),
            mode="lines+markers",
            line={"color": SELECTED},
            hovertemplate=hover,
        ),
        go.Bar(
            x=found.places + apart,
            width=0.7 if not apart.any() else 0.35,
            y=found.updates[:, query],
            text=found.names,
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
            token=quoted(trace.tokens[query]),
            first=number(found.stream[0, query]),
            last=number(found.stream[-1, query]),
        ),
        xaxis=sublayer_axis(found.stages),
        yaxis={"title": {"text": measure}, "rangemode": "tozero"},
        bargap=0.3,
    )


def directions(trace: Trace, query: int = 0) -> go.Figure:
    """The cosine of each sublayer's update with the stream that it is added to."""
    found = updates(trace, query)
    most = int(np.abs(found.cosines).argmax())
    return figure(
        go.Bar(
            x=np.arange(len(found.names)),
            y=found.cosines,
            customdata=np.arange(len(found.names)) // 2,
            text=[
                _(
                    "{name}: length {length} onto a stream of {before}",
                    name=name,
                    length=number(length),
                    before=number(before),
                )
                for name, length, before in zip(found.names, found.lengths, found.before, strict=True)
            ],
            textposition="none",
            marker={"color": [ATTENTION, FEED_FORWARD] * trace.config.num_layers},
            hovertemplate=_("%{text}<br>cosine %{y:.3f}<extra></extra>"),
        ),
        alt=_(
            "Cosine of each sublayer's update with the stream at {token}: furthest from 0 is {name} with {cosine}.",
            token=quoted(trace.tokens[query]),
            name=found.names[most],
            cosine=number(found.cosines[most]),
        ),
        xaxis=sublayer_axis(found.names),
        yaxis={"title": {"text": _("cosine (against ← 0 → along)")}, "range": [-1, 1]},
        bargap=0.3,
        hovermode="x",  # a short bar is hard to hit
    )
