"""Bars over the tokens of a run, in percent: the figures of the story."""

import numpy as np

from explorer.tracing.trace import Trace
from explorer.translations import _
from explorer.views import graph_objects as go
from explorer.views.style import SELECTED, figure, positions, token_axis


def token_bars(
    trace: Trace, shares: np.ndarray, selected_position: int, title: str, alt: str, first: int = 0
) -> go.Figure:
    """Draw a bar for each token.

    Args:
        shares: (N,) in [0, 1], of N tokens beginning with position `first`.
        selected_position: position of the token whose bar is highlighted, if it is among them.
        title: what a bar's height is.
    """
    tokens = trace.tokens[: first + len(shares)]
    labels, hover = positions(tokens), "%{hovertext}<br>%{y:.2%}<extra></extra>"
    bars = [go.Bar(x=labels[first:], y=shares, hovertext=labels[first:], hovertemplate=hover)]
    if first <= selected_position < len(tokens):
        selected_label, share = [labels[selected_position]], [shares[selected_position - first]]
        bars.append(
            go.Bar(x=selected_label, y=share, hovertext=selected_label, hovertemplate=hover, marker={"color": SELECTED})
        )
    return figure(
        bars,
        alt=alt,
        xaxis={**token_axis(tokens, _("token")), "tickangle": -60},
        yaxis={"range": [0, 1], "tickformat": ".0%", "title": {"text": title}},
        bargap=0.15,
        barmode="overlay",
        showlegend=False,
    )


def format_percent(share: float) -> str:
    """Format a share as in "84%", "3.1%", "0.02%", "over 99%" or "less than 0.01%"."""
    if share >= 0.995 and share < 1:
        return _("over 99%")
    if share >= 0.1 or share == 0:
        return f"{share:.0%}"
    return f"{share * 100:.2g}%" if share >= 0.0001 else _("less than 0.01%")
