"""Attention weights as lines between tokens."""

import numpy as np

from explorer.explain.notation import quote_token
from explorer.tracing.trace import Trace
from explorer.translations import _
from explorer.views import graph_objects as go
from explorer.views.style import ATTENTION, MONO, RESIDUAL, SELECTED, figure, label

MAX_LINE_TOKENS = 48  # tokens between which lines are drawn
MIN_DRAWN_WEIGHT = 0.05  # weight of a line
OPACITIES = np.linspace(MIN_DRAWN_WEIGHT, 1, 7)[:-1]


def attention_lines(trace: Trace, layer: int, head: int, query: int, key: int = 0) -> go.Figure:
    """Draw a line from every query, left, to every key that it attends to, right; opacity grows with the weight.

    In a long run, the tokens around the chosen query are drawn.
    """
    end = min(len(trace), max(MAX_LINE_TOKENS, query + 1 + MAX_LINE_TOKENS // 4))
    visible = range(max(0, end - MAX_LINE_TOKENS), end)
    weights = trace[f"blocks.{layer}.attn.pattern"][head][visible.start : end, visible.start : end]  # (n, n)
    traces = []
    rows, columns = np.nonzero(weights >= MIN_DRAWN_WEIGHT)
    levels = np.digitize(weights[rows, columns], OPACITIES)
    ends = np.stack([rows, columns], axis=1) + visible.start  # (lines, 2): query, key
    for level, opacity in enumerate(OPACITIES, start=1):
        for chosen, color in ((False, ATTENTION), (True, SELECTED)):
            selected_ends = ends[(levels == level) & ((ends[:, 0] == query) == chosen)]
            if len(selected_ends):
                traces.append(
                    go.Scatter(
                        x=np.tile([0, 1, np.nan], len(selected_ends)),
                        y=np.column_stack([selected_ends, np.full(len(selected_ends), np.nan)]).ravel(),
                        mode="lines",
                        line={"color": color, "width": 3 if chosen else 1.5},
                        opacity=opacity,
                        hoverinfo="skip",
                        showlegend=False,
                    )
                )
    names = [label(trace.tokens[i]) for i in visible]
    weights = trace[f"blocks.{layer}.attn.pattern"][head]
    for x, side, token_hover in ((0, "middle left", query_hover), (1, "middle right", key_hover)):
        chosen = key if x else query
        weight_texts = [weight_hover(weights, *((query, i) if x else (i, key))) for i in visible]
        traces.append(
            go.Scatter(
                x=np.full(len(visible), x),
                y=list(visible),
                mode="markers+text",
                marker={"size": 6, "color": [SELECTED if i == chosen else RESIDUAL for i in visible]},
                text=names,
                textposition=side,
                textfont={"family": MONO, "size": 11},
                customdata=[(max(query, i), i) if x else (i, min(i, key)) for i in visible],
                hovertext=[
                    f"{token_hover(i, name)}<br>{weight}"
                    for i, name, weight in zip(visible, names, weight_texts, strict=True)
                ],
                hovertemplate="%{hovertext}<extra></extra>",
                showlegend=False,
            )
        )
    range_text, head_label = "", _("layer {layer} head {head}", layer=layer, head=head)
    if len(visible) < len(trace):
        range_text = _("tokens {first} to {last} of {total}", first=visible.start, last=end - 1, total=len(trace))
        head_label = f"{head_label} ({range_text})"
    chosen = quote_token(trace.tokens[query])
    fig = figure(
        traces,
        alt=_("Lines from queries to keys of {whose}; {token} is chosen.", whose=head_label, token=chosen),
        xaxis={
            "range": [-0.35, 1.35],
            "tickvals": [0, 1],
            "ticktext": [_("query"), _("key")],
            "side": "top",
            "showgrid": False,
            "zeroline": False,
            "title": {"text": range_text},
        },
        yaxis={"visible": False, "range": [end - 0.5, visible.start - 0.5]},
    )
    fig.set_meta(lines=len(trace))  # so that the page shows some of them alone
    return fig


def weight_hover(weights: np.ndarray, query: int, key: int) -> str:
    """Return the hover text of the weight from a query to a key."""
    if key > query:
        return _("not seen: after the query")
    weight = weights[query, key]
    return _("from query {query} to key {key}: weight {weight:.3f}", query=query, key=key, weight=weight)


def query_hover(position: int, token: str) -> str:
    """Return the hover text of a query."""
    return _("query {position} {token}", position=position, token=token)


def key_hover(position: int, token: str) -> str:
    """Return the hover text of a key."""
    return _("key {position} {token}", position=position, token=token)
