"""Bars of the sparsity of each layer's feed-forward."""

import numpy as np

from explorer.analysis.feed_forward import NEAR_ZERO_RATIO, NORMAL_SHARE, RELU_KINDS, sparsity
from explorer.tracing.trace import Trace
from explorer.translations import N_, _, translate
from explorer.views import graph_objects as go
from explorer.views.style import FEED_FORWARD, RESIDUAL, SELECTED, figure

# Labels of the values and of the neurons, and the alternative text.
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


def sparsity_by_layer(trace: Trace, layer: int | None = None) -> go.Figure:
    """Draw the share of hidden values (near) 0 and of silent neurons in each layer; the chosen layer framed."""
    shares = sparsity(trace)
    exact = trace.config.ffn in RELU_KINDS
    values, silent, alt = EXACTLY_0 if exact else NEAR_0
    bars = (
        (translate(values), shares.near_zero, FEED_FORWARD),
        (translate(silent), shares.inactive, RESIDUAL),
    )
    title = _("layer")
    if not exact:
        title = _(
            "layer<br>(near 0: within {near:g} × root mean square;<br>dotted: a bell curve's share, {bell:.0%})",
            near=NEAR_ZERO_RATIO,
            bell=NORMAL_SHARE,
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
        alt=translate(
            alt,
            values=", ".join(f"{share:.0%}" for share in shares.near_zero),
            tokens=len(trace),
            neurons=", ".join(f"{share:.0%}" for share in shares.inactive),
        ),
        xaxis={"title": {"text": title}, "dtick": 1, "showgrid": False},
        yaxis={"title": {"text": _("share")}, "range": [0, 1], "tickformat": ".0%"},
        barmode="group",
        bargap=0.3,
        hovermode="x",
    )
    if not exact:
        fig.add_hline(NORMAL_SHARE, line={"color": RESIDUAL, "dash": "dot", "width": 1})
    if layer is not None:
        fig.add_vrect(layer - 0.5, layer + 0.5, line={"color": SELECTED, "width": 2})
    return fig
