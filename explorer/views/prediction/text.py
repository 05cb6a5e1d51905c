"""The prediction view's pictures along the text: what does come next, and where a prediction came from."""

import numpy as np

from explorer.analysis.next_token import rank, surprisal
from explorer.analysis.rollout import rollout
from explorer.explain.notation import number, quoted
from explorer.language import _
from explorer.tracing.trace import Trace
from explorer.views import graph_objects as go
from explorer.views.style import RESIDUAL, SELECTED, figure, label, positions, token_axis


def actual(trace: Trace, query: int | None = None) -> go.Figure:
    """Position by position, how likely the model found the token that does come next, and at which rank."""
    chances, places = 2 ** -surprisal(trace)[1:], rank(trace)[1:]  # (T - 1,)
    said = trace.logits.summary
    shares_of = np.exp(said.likeliest_logits - said.log_sum_exp[:, None])[:-1]  # (T - 1, 3)
    names, tokens = positions(trace.tokens), [label(token) for token in trace.tokens]
    told = []
    for i, (top, shares) in enumerate(zip(said.likeliest[:-1], shares_of, strict=True)):
        comes = _(
            "after {token} comes {next}:<br>probability {probability}, rank {rank:,.0f}<br>the likeliest:",
            token=names[i],
            next=tokens[i + 1],
            probability=number(chances[i]),
            rank=places[i],
        )
        ranked = enumerate(zip(top, shares, strict=True), 1)
        lines = [f"{n}. {label(trace.vocabulary[token_id])}  {p:.3f}" for n, (token_id, p) in ranked]
        told.append("<br>".join([comes, *lines]))
    columns = {"x": names[:-1], "text": told, "hovertemplate": "%{text}<extra></extra>", "showlegend": False}
    fig = figure(
        [
            go.Bar(**columns, y=chances, textposition="none"),
            go.Scatter(**columns, y=places, yaxis="y2", mode="markers", marker={"color": RESIDUAL, "size": 6}),
        ],
        alt=_(
            "Probability and rank of the token that comes next after each of {positions} positions: {first} times the "
            "model's likeliest, median probability {median}.",
            positions=len(told),
            first=int((places == 1).sum()),
            median=number(np.median(chances)),
        )
        if told
        else _("Only one token: nothing follows yet."),
        xaxis={
            **token_axis(trace.tokens, _("after this token")),
            "tickangle": -60,
            "range": [-0.5, len(trace) - 0.5],
            "anchor": "y2",
        },
        yaxis={"range": [0, 1], "domain": [0.42, 1], "title": {"text": _("probability")}},
        yaxis2={
            "type": "log",
            "range": [np.log10(trace.config.vocab_size), -0.3],
            "domain": [0, 0.36],
            "dtick": 1,
            "tickformat": "~g",
            "title": {"text": _("rank")},
        },
        bargap=0.15,
    )
    if query is not None:
        column = {"x0": query - 0.5, "x1": query + 0.5, "y0": 0, "y1": 1, "yref": "paper"}
        fig.add_shape(type="rect", **column, line={"color": SELECTED, "width": 1})
        if query == len(trace) - 1:
            fig.add_annotation(
                x=query, y=0.5, text=_("nothing follows yet"), textangle=-90, font={"size": 11}, showarrow=False
            )
    return fig


def followed(trace: Trace, query: int, key: int | None = None) -> go.Figure:
    """Attention rollout: where what ends at the query began, as bars over the tokens up to it; they sum to 1."""
    weights = rollout(trace, query)[: query + 1]
    strongest = int(weights.argmax())
    tokens = trace.tokens[: query + 1]
    colors = [SELECTED if i == key else RESIDUAL for i in range(len(tokens))]
    places, hover = positions(tokens), _("from %{hovertext}<br>share %{y:.3f}<extra></extra>")
    title = _(
        "token<br>(assumed of every layer: half stays, along the stream,<br>half comes from where its heads look on "
        "average)"
    )
    return figure(
        go.Bar(x=places, y=weights, marker={"color": colors}, hovertext=places, hovertemplate=hover),
        alt=_(
            "Attention rollout of {token} at position {position}: most, {share}, from {origin} at {strongest}.",
            token=quoted(trace.tokens[query]),
            position=query,
            share=number(weights[strongest]),
            origin=quoted(tokens[strongest]),
            strongest=strongest,
        ),
        xaxis={**token_axis(tokens, title, most=24), "tickangle": -60},
        yaxis={"rangemode": "tozero", "title": {"text": _("share, of 1")}},
        bargap=0.15,
    )
