"""How much of the feed-forward layers does next to nothing."""

import numpy as np

from explorer.analysis.feed_forward import BELL, EXACT, NEAR, sparsity
from explorer.language import N_, _, look_up
from explorer.tracing.trace import Trace
from explorer.views import graph_objects as go
from explorer.views.style import FEED_FORWARD, RESIDUAL, SELECTED, figure

# Said of the values, of the neurons, and of the picture.
NEAR_0 = (
    N_("hidden values near 0"),
    N_("neurons near 0 at every token"),
    N_("By layer, hidden values near 0: {values}; neurons near 0 at all {tokens} tokens: {neurons}."),
)


EXACTLY_0 = (
    N_("hidden values exactly 0"),
    N_("neurons exactly 0 at every token (dead here)"),
    N_("By layer, hidden values exactly 0: {values}; neurons exactly 0 at all {tokens} tokens: {neurons}."),
)


def by_layer(trace: Trace, layer: int | None = None) -> go.Figure:
    """How much of each layer's feed-forward does next to nothing in this run; a frame around the chosen layer."""
    shares = sparsity(trace)
    exact = trace.config.ffn in EXACT
    values, silent, alt = EXACTLY_0 if exact else NEAR_0
    bars = (
        (look_up(values), shares.near_zero, FEED_FORWARD),
        (look_up(silent), shares.silent, RESIDUAL),
    )
    title = _("layer")
    if not exact:
        title = _(
            "layer<br>(near 0: within {near:g} × root mean square;<br>dotted: a bell curve's share, {bell:.0%})",
            near=NEAR,
            bell=BELL,
        )
    layers = np.arange(trace.config.num_layers)
    fig = figure(
        [
            go.Bar(
                x=layers,
                y=values,
                name=name,
                marker={"color": color},
                hovertemplate=_("layer %{{x}}<br>{name}: %{{y:.1%}}<extra></extra>", name=name),
            )
            for name, values, color in bars
        ],
        alt=look_up(
            alt,
            values=", ".join(f"{share:.0%}" for share in shares.near_zero),
            tokens=len(trace),
            neurons=", ".join(f"{share:.0%}" for share in shares.silent),
        ),
        xaxis={"title": {"text": title}, "dtick": 1, "showgrid": False},
        yaxis={"title": {"text": _("share")}, "range": [0, 1], "tickformat": ".0%"},
        barmode="group",
        bargap=0.3,
        hovermode="x",
    )
    if not exact:
        fig.add_hline(BELL, line={"color": RESIDUAL, "dash": "dot", "width": 1})
    if layer is not None:
        fig.add_vrect(layer - 0.5, layer + 0.5, line={"color": SELECTED, "width": 2})
    return fig
