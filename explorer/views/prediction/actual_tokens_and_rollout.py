"""Figures along the text: the probability of the actual next tokens, and attention rollout."""

import numpy as np

from explorer.analysis.next_token import actual_token_ranks, surprisal
from explorer.analysis.token_contributions import attention_rollout
from explorer.explain.notation import format_number, quote_token
from explorer.tracing.trace import Trace
from explorer.translations import _
from explorer.views import graph_objects as go
from explorer.views.style import RESIDUAL, SELECTED, figure, label, positions, token_axis


def actual_token_plot(trace: Trace, query: int | None = None) -> go.Figure:
    """Draw the probability and rank of the actual next token at every position."""
    actual_probs, rank_values = 2 ** -surprisal(trace)[1:], actual_token_ranks(trace)[1:]  # (T - 1,)
    summary = trace.logits.summary
    top_probabilities = np.exp(summary.likeliest_logits - summary.log_sum_exp[:, None])[:-1]  # (T - 1, 3)
    names, tokens = positions(trace.tokens), [label(token) for token in trace.tokens]
    hover_texts = []
    for i, (top_ids, shares) in enumerate(zip(summary.likeliest[:-1], top_probabilities, strict=True)):
        first_line = _(
            "after {token} comes {next}:<br>probability {probability}, rank {rank:,.0f}<br>the likeliest:",
            token=names[i],
            next=tokens[i + 1],
            probability=format_number(actual_probs[i]),
            rank=rank_values[i],
        )
        ranked = enumerate(zip(top_ids, shares, strict=True), 1)
        lines = [f"{n}. {label(trace.vocabulary[token_id])}  {p:.3f}" for n, (token_id, p) in ranked]
        hover_texts.append("<br>".join([first_line, *lines]))
    columns = {"x": names[:-1], "text": hover_texts, "hovertemplate": "%{text}<extra></extra>", "showlegend": False}
    fig = figure(
        [
            go.Bar(**columns, y=actual_probs, textposition="none"),
            go.Scatter(**columns, y=rank_values, yaxis="y2", mode="markers", marker={"color": RESIDUAL, "size": 6}),
        ],
        alt=_(
            "Probability and rank of the token that comes next after each of {positions} positions: {first} times the "
            "model's likeliest, median probability {median}.",
            positions=len(hover_texts),
            first=int((rank_values == 1).sum()),
            median=format_number(np.median(actual_probs)),
        )
        if hover_texts
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


def rollout_bars(trace: Trace, query: int, key: int | None = None) -> go.Figure:
    """Draw attention rollout from the query as bars over the tokens up to it; they sum to 1."""
    weights = attention_rollout(trace, query)[: query + 1]
    strongest = int(weights.argmax())
    tokens = trace.tokens[: query + 1]
    colors = [SELECTED if i == key else RESIDUAL for i in range(len(tokens))]
    labels, hover = positions(tokens), _("from %{hovertext}<br>share %{y:.3f}<extra></extra>")
    title = _(
        "token<br>(assumed of every layer: half stays, along the stream,<br>half comes from where its heads look on "
        "average)"
    )
    return figure(
        go.Bar(x=labels, y=weights, marker={"color": colors}, hovertext=labels, hovertemplate=hover),
        alt=_(
            "Attention rollout of {token} at position {position}: most, {share}, from {origin} at {strongest}.",
            token=quote_token(trace.tokens[query]),
            position=query,
            share=format_number(weights[strongest]),
            origin=quote_token(tokens[strongest]),
            strongest=strongest,
        ),
        xaxis={**token_axis(tokens, title, max_labels=24), "tickangle": -60},
        yaxis={"rangemode": "tozero", "title": {"text": _("share, of 1")}},
        bargap=0.15,
    )
