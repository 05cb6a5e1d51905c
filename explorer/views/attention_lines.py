"""The attention view's lines between tokens."""

import numpy as np
import plotly.graph_objects as go

from explorer.style import ATTENTION, MONO, RESIDUAL, SELECTED, figure, label, quoted
from explorer.trace import Trace

MOST_LINES = 48  # tokens between which lines are drawn
FAINTEST = 0.05  # weight of a line
OPACITIES = np.linspace(FAINTEST, 1, 7)[:-1]


def lines(trace: Trace, layer: int, head: int, query: int) -> go.Figure:
    """A line from every query, left, to every key it looks at, right; the stronger the weight, the more opaque.

    Of a long run, the tokens around the chosen query.
    """
    end = min(len(trace), max(MOST_LINES, query + 1 + MOST_LINES // 4))
    shown = range(max(0, end - MOST_LINES), end)
    weights = trace[f"blocks.{layer}.attn.pattern"][head][shown.start : end, shown.start : end]  # (n, n)
    traces = []
    rows, columns = np.nonzero(weights >= FAINTEST)
    levels = np.digitize(weights[rows, columns], OPACITIES)
    ends = np.stack([rows, columns], axis=1) + shown.start  # (lines, 2): query, key
    for level, opacity in enumerate(OPACITIES, start=1):
        for chosen, color in ((False, ATTENTION), (True, SELECTED)):
            some = ends[(levels == level) & ((ends[:, 0] == query) == chosen)]
            if len(some):
                traces.append(
                    go.Scatter(
                        x=np.tile([0, 1, np.nan], len(some)),
                        y=np.column_stack([some, np.full(len(some), np.nan)]).ravel(),
                        mode="lines",
                        line={"color": color, "width": 3 if chosen else 1.5},
                        opacity=opacity,
                        hoverinfo="skip",
                        showlegend=False,
                    )
                )
    names = [label(trace.tokens[i]) for i in shown]
    for x, side in ((0, "middle left"), (1, "middle right")):
        colors = [SELECTED if x == 0 and i == query else RESIDUAL for i in shown]
        traces.append(
            go.Scatter(
                x=np.full(len(shown), x),
                y=list(shown),
                mode="markers+text",
                marker={"size": 6, "color": colors},
                text=names,
                textposition=side,
                textfont={"family": MONO, "size": 11},
                customdata=list(shown),
                hovertext=[
                    f"{'query' if x == 0 else 'key'} {i} {name}<br>weight from the chosen query {weight:.3f}"
                    for i, name, weight in zip(
                        shown, names, weights_from(trace, layer, head, query, shown), strict=True
                    )
                ],
                hovertemplate="%{hovertext}<extra></extra>",
                showlegend=False,
            )
        )
    part = "" if len(shown) == len(trace) else f" (tokens {shown.start} to {end - 1} of {len(trace)})"
    return figure(
        traces,
        alt=f"Lines from queries to keys of layer {layer} head {head}{part}; {quoted(trace.tokens[query])} is chosen.",
        xaxis={
            "range": [-0.35, 1.35],
            "tickvals": [0, 1],
            "ticktext": ["query", "key"],
            "side": "top",
            "showgrid": False,
            "zeroline": False,
            "title": {"text": part.strip(" ()")},
        },
        yaxis={"visible": False, "range": [end - 0.5, shown.start - 0.5]},
    )


def weights_from(trace: Trace, layer: int, head: int, query: int, keys: range) -> np.ndarray:
    return trace[f"blocks.{layer}.attn.pattern"][head, query, keys.start : keys.stop]
