"""The attention view's lines between tokens."""

import numpy as np

from explorer.explain.notation import quoted
from explorer.language import _
from explorer.tracing.trace import Trace
from explorer.views import graph_objects as go
from explorer.views.style import ATTENTION, MONO, RESIDUAL, SELECTED, figure, label

MOST_LINES = 48  # tokens between which lines are drawn
FAINTEST = 0.05  # weight of a line
OPACITIES = np.linspace(FAINTEST, 1, 7)[:-1]


def lines(trace: Trace, layer: int, head: int, query: int, key: int = 0) -> go.Figure:
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
    weights = trace[f"blocks.{layer}.attn.pattern"][head]
    for x, side, token_at in ((0, "middle left", query_at), (1, "middle right", key_at)):
        chosen = key if x else query
        told = [weight_told(weights, *((query, i) if x else (i, key))) for i in shown]
        traces.append(
            go.Scatter(
                x=np.full(len(shown), x),
                y=list(shown),
                mode="markers+text",
                marker={"size": 6, "color": [SELECTED if i == chosen else RESIDUAL for i in shown]},
                text=names,
                textposition=side,
                textfont={"family": MONO, "size": 11},
                customdata=[(max(query, i), i) if x else (i, min(i, key)) for i in shown],
                hovertext=[
                    f"{token_at(i, name)}<br>{weight}" for i, name, weight in zip(shown, names, told, strict=True)
                ],
                hovertemplate="%{hovertext}<extra></extra>",
                showlegend=False,
            )
        )
    part, whose = "", _("layer {layer} head {head}", layer=layer, head=head)
    if len(shown) < len(trace):
        part = _("tokens {first} to {last} of {total}", first=shown.start, last=end - 1, total=len(trace))
        whose = f"{whose} ({part})"
    chosen = quoted(trace.tokens[query])
    fig = figure(
        traces,
        alt=_("Lines from queries to keys of {whose}; {token} is chosen.", whose=whose, token=chosen),
        xaxis={
            "range": [-0.35, 1.35],
            "tickvals": [0, 1],
            "ticktext": [_("query"), _("key")],
            "side": "top",
            "showgrid": False,
            "zeroline": False,
            "title": {"text": part},
        },
        yaxis={"visible": False, "range": [end - 0.5, shown.start - 0.5]},
    )
    fig.note(lines=len(trace))  # so that the page shows some of them alone
    return fig


def weight_told(weights: np.ndarray, query: int, key: int) -> str:
    """The weight from a query to a key, at the end that is pointed at."""
    if key > query:
        return _("not seen: after the query")
    weight = weights[query, key]
    return _("from query {query} to key {key}: weight {weight:.3f}", query=query, key=key, weight=weight)


def query_at(position: int, token: str) -> str:
    return _("query {position} {token}", position=position, token=token)


def key_at(position: int, token: str) -> str:
    return _("key {position} {token}", position=position, token=token)
