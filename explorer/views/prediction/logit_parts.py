"""The prediction view's pictures of a logit's parts."""

import numpy as np

from explorer.analysis.attribution import attribution
from explorer.architecture import shifts
from explorer.explain.notation import added, number, quoted
from explorer.language import _
from explorer.tracing.trace import Trace
from explorer.views import graph_objects as go
from explorer.views.explained import logit_of
from explorer.views.logit_bars import components
from explorer.views.style import SELECTED, figure


def parts(trace: Trace, query: int, token_id: int, rival_id: int | None = None, layer: int = 0) -> go.Figure:
    """What every part adds to the logit of a token after the query, or to its lead over a rival; they add up to it.

    Args:
        layer: chosen; clicks on what belongs to no layer leave it.
    """
    taken = attribution(trace, query, token_id, rival_id)
    bars = list(components(trace, taken))
    names, values, colours, told, layers = zip(*bars, strict=True)
    most = int(np.argmax(np.abs(values)))
    return figure(
        go.Bar(
            x=np.arange(len(bars)),
            y=values,
            marker={"color": colours},
            text=[f"{words}<br>{signed(value)}" for words, value in zip(told, values, strict=True)],
            textposition="none",
            customdata=[layer if of is None else of for of in layers],
            hovertemplate="%{text}<extra></extra>",
        ),
        alt=_(
            "{count} parts that add up to {logit} after {token}, {value}; the largest: {part}, {adds}.",
            count=len(bars),
            logit=logit_of(trace, token_id, rival_id),
            token=quoted(trace.tokens[query]),
            value=number(taken.logit),
            part=told[most],
            adds=signed(values[most]),
        ),
        xaxis={
            "tickvals": np.arange(len(bars)),
            "ticktext": names,
            "tickangle": -60,
            "showgrid": False,
            "title": {"text": legend(trace)},
        },
        yaxis={
            "title": {
                "text": _("adds; sum {total}, off by {error}", total=number(taken.total), error=number(taken.error))
            }
        },
        bargap=0.2,
    )


def legend(trace: Trace) -> str:
    """What the colours of the bars mean."""
    if "position_embed" in trace:
        said = _("green: embedding and position, blue: attention,<br>orange: feed-forward")
    else:
        said = _("green: embedding, blue: attention,<br>orange: feed-forward")
    if not shifts.has_shifts(trace.config):
        return said
    return _("{colours},<br>purple: {shifts}", colours=said, shifts=shifts.short(trace.config))


def heads(
    trace: Trace, query: int, token_id: int, rival_id: int | None = None, layer: int | None = None, head: int = 0
) -> go.Figure:
    """What every head adds to the logit of a token after the query, or to its lead over a rival; row = layer."""
    values = attribution(trace, query, token_id, rival_id).heads  # (L, H)
    largest = float(np.abs(values).max()) or 1.0
    most = np.unravel_index(np.abs(values).argmax(), values.shape)
    fig = figure(
        go.Heatmap(
            z=values,
            zmin=-largest,
            zmax=largest,
            autocolorscale=True,
            text=[[added(value) for value in row] for row in values],
            texttemplate="%{text}" if values.shape[1] <= 12 else None,
            hovertemplate=_("layer %{y} head %{x}<br>adds %{z:.4f}<extra></extra>"),
            xgap=1,
            ygap=1,
            colorbar={"title": {"text": _("adds"), "side": "right"}},
        ),
        alt=_(
            "What {heads} heads add to {logit} after {token}: most, {adds}, layer {layer} head {head}.",
            heads=values.size,
            logit=logit_of(trace, token_id, rival_id),
            token=quoted(trace.tokens[query]),
            adds=signed(values[most]),
            layer=most[0],
            head=most[1],
        ),
        xaxis={"title": {"text": _("head")}, "dtick": 1, "showgrid": False},
        yaxis={"title": {"text": _("layer")}, "dtick": 1, "showgrid": False, "autorange": "reversed"},
    )
    if layer is not None:
        corners = {"x0": head - 0.5, "x1": head + 0.5, "y0": layer - 0.5, "y1": layer + 0.5}
        fig.add_shape(type="rect", **corners, line={"color": SELECTED, "width": 3})
    return fig


def signed(value: float) -> str:
    size = number(abs(value))
    return _("adds {value}", value=size) if value >= 0 else _("takes {value}", value=size)
