"""Bars over the tokens of a run, in percent: the pictures of the simple page."""

import numpy as np

from explorer.language import _
from explorer.tracing.trace import Trace
from explorer.views import graph_objects as go
from explorer.views.style import SELECTED, figure, positions, token_axis


def token_bars(trace: Trace, shares: np.ndarray, chosen: int, title: str, alt: str, first: int = 0) -> go.Figure:
    """A bar a token.

    Args:
        shares: (N,) in [0, 1], of N tokens from the `first` on.
        chosen: position of the token whose bar stands out, if it is among them.
        title: what a bar's height is.
    """
    tokens = trace.tokens[: first + len(shares)]
    places, hover = positions(tokens), "%{hovertext}<br>%{y:.2%}<extra></extra>"
    bars = [go.Bar(x=places[first:], y=shares, hovertext=places[first:], hovertemplate=hover)]
    if first <= chosen < len(tokens):
        place, share = [places[chosen]], [shares[chosen - first]]
        bars.append(go.Bar(x=place, y=share, hovertext=place, hovertemplate=hover, marker={"color": SELECTED}))
    return figure(
        bars,
        alt=alt,
        xaxis={**token_axis(tokens, _("token")), "tickangle": -60},
        yaxis={"range": [0, 1], "tickformat": ".0%", "title": {"text": title}},
        bargap=0.15,
        barmode="overlay",
        showlegend=False,
    )


def percent(share: float) -> str:
    """As in "84%", "3.1%", "0.02%"; of what is less, "less than 0.01%"."""
    if share >= 0.995 and share < 1:
        return _("over 99%")
    if share >= 0.1 or share == 0:
        return f"{share:.0%}"
    return f"{share * 100:.2g}%" if share >= 0.0001 else _("less than 0.01%")
