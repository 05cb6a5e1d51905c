"""The experiments' maps of what each part does to a prediction: the model without it."""

import numpy as np
import plotly.graph_objects as go

from explorer.analysis.ablation import Ablation, ablation
from explorer.analysis.residual import SUBLAYERS
from explorer.analysis.rounding import resolution
from explorer.explain.notation import added, number, quoted
from explorer.tracing.trace import Trace
from explorer.views.change import say
from explorer.views.stage_axes import sublayer_axis
from explorer.views.style import ATTENTION, FEED_FORWARD, SELECTED, figure


def heads(trace: Trace, query: int, token_id: int, layer: int | None = None, head: int = 0) -> go.Figure:
    """By how many bits each head, silenced alone, changes the probability of a token after the query; row = layer."""
    found = ablation(trace, query, token_id)
    values = found.heads  # (L, H)
    limit, largest = resolution(trace.dtype) * max(1.0, -found.before), float(np.abs(values).max())
    none = largest <= limit
    most = np.unravel_index(np.abs(values).argmax(), values.shape)
    fig = figure(
        go.Heatmap(
            z=values,
            zmin=-1 if none else -largest,
            zmax=1 if none else largest,
            autocolorscale=True,
            text=[[added(value) for value in row] for row in values],
            customdata=2 ** (found.before + values),
            texttemplate="%{text}" if values.shape[1] <= 12 else None,
            hovertemplate=(
                "without layer %{y} head %{x}<br>%{text} bits: "
                f"probability {number(2**found.before)} → %{{customdata:.3g}}<extra></extra>"
            ),
            xgap=1,
            ygap=1,
            colorbar={"title": {"text": "bits, without it", "side": "right"}},
        ),
        alt=(
            f"Change of the probability of {told(trace, query, token_id, found)} when each of {values.size} heads is "
            f"silenced alone: most without layer {most[0]} head {most[1]}, {added(values[most])} bits."
        ),
        xaxis={"title": {"text": "head"}, "dtick": 1, "showgrid": False},
        yaxis={"title": {"text": "layer"}, "dtick": 1, "showgrid": False, "autorange": "reversed"},
    )
    if layer is not None:
        corners = {"x0": head - 0.5, "x1": head + 0.5, "y0": layer - 0.5, "y1": layer + 0.5}
        fig.add_shape(type="rect", **corners, line={"color": SELECTED, "width": 3})
    if none:
        say(fig, f"without any head it is as likely, as far as {trace.dtype} can tell ({number(limit)} bits)")
    return fig


def sublayers(trace: Trace, query: int, token_id: int) -> go.Figure:
    """The same without all heads of a layer, or without its feed-forward."""
    found = ablation(trace, query, token_id)
    values = found.sublayers.ravel()  # (2 L,)
    names = [f"{layer} {part}" for layer in range(len(found.sublayers)) for part in SUBLAYERS.values()]
    chances = number(2**found.before)
    most = int(np.abs(values).argmax())
    return figure(
        go.Bar(
            x=np.arange(len(names)),
            y=values,
            customdata=np.arange(len(names)) // 2,
            text=[
                f"without {name}: {added(value)} bits<br>probability {chances} → {number(2 ** (found.before + value))}"
                for name, value in zip(names, values, strict=True)
            ],
            textposition="none",
            marker={"color": [ATTENTION, FEED_FORWARD] * len(found.sublayers)},
            hovertemplate="%{text}<extra></extra>",
        ),
        alt=(
            f"Change of the probability of {told(trace, query, token_id, found)} without each sublayer: most without "
            f"{names[most]}, {added(values[most])} bits."
        ),
        xaxis={**sublayer_axis(names), "title": {"text": "without (blue: all heads, orange: feed-forward)"}},
        yaxis={"title": {"text": "change of log₂ probability, bits"}},
        bargap=0.3,
        hovermode="x",  # a short bar is hard to hit
    )


def told(trace: Trace, query: int, token_id: int, found: Ablation) -> str:
    chance = number(2**found.before)
    return f"{quoted(trace.vocabulary[token_id])} after {quoted(trace.tokens[query])}, {chance},"
