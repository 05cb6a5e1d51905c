"""Prediction: how the next token comes to be likely."""

import numpy as np
import plotly.graph_objects as go

from explorer.analysis.attribution import attribution
from explorer.analysis.lens import Readings
from explorer.analysis.next_token import next_token, rank, ranking, surprisal
from explorer.analysis.norms import norm_scale
from explorer.analysis.rollout import rollout
from explorer.selection import Selection
from explorer.style import RESIDUAL, SELECTED, figure, label, number, positions, quoted, token_axis
from explorer.trace import Trace
from explorer.views.prediction_lens import lens, path
from explorer.views.prediction_parts import heads, logit_of, parts
from explorer.views.view import Panel, View


def explained(trace: Trace, selection: Selection) -> tuple[int, int | None]:
    """Ids of the explained token and of the one it is compared with, None if with none."""
    order = ranking(trace, selection.query)
    rival = int(order[selection.rival - 1]) if selection.rival else None
    return int(order[selection.target - 1]), rival


def actual(trace: Trace, query: int | None = None) -> go.Figure:
    """Position by position, how likely the model found the token that does come next, and at which rank."""
    chances, places = 2 ** -surprisal(trace)[1:], rank(trace)[1:]  # (T - 1,)
    likeliest = Readings.of(trace["logits"][:-1])
    names, tokens = positions(trace.tokens), [label(token) for token in trace.tokens]
    told = []
    for i, (top, shares) in enumerate(zip(likeliest.top, likeliest.probabilities, strict=True)):
        comes = f"after {names[i]} comes {tokens[i + 1]}:<br>probability {number(chances[i])}, rank {places[i]:,.0f}"
        ranked = enumerate(zip(top, shares, strict=True), 1)
        lines = [f"{n}. {label(trace.vocabulary[token_id])}  {p:.3f}" for n, (token_id, p) in ranked]
        told.append("<br>".join([comes, "the likeliest:", *lines]))
    columns = {"x": names[:-1], "text": told, "hovertemplate": "%{text}<extra></extra>", "showlegend": False}
    first = int((places == 1).sum())
    fig = figure(
        [
            go.Bar(**columns, y=chances, textposition="none"),
            go.Scatter(**columns, y=places, yaxis="y2", mode="markers", marker={"color": RESIDUAL, "size": 6}),
        ],
        alt=(
            f"Probability and rank of the token that comes next after each of {len(told)} positions: "
            f"{first} times the model's likeliest, median probability {number(np.median(chances))}."
            if told
            else f"Only one token: {LAST}."
        ),
        xaxis={
            **token_axis(trace.tokens, "after this token"),
            "tickangle": -60,
            "range": [-0.5, len(trace) - 0.5],
            "anchor": "y2",
        },
        yaxis={"range": [0, 1], "domain": [0.42, 1], "title": {"text": "probability"}},
        yaxis2={
            "type": "log",
            "range": [np.log10(trace.config.vocab_size), -0.3],
            "domain": [0, 0.36],
            "dtick": 1,
            "tickformat": "~g",
            "title": {"text": "rank"},
        },
        bargap=0.15,
    )
    if query is not None:
        column = {"x0": query - 0.5, "x1": query + 0.5, "y0": 0, "y1": 1, "yref": "paper"}
        fig.add_shape(type="rect", **column, line={"color": SELECTED, "width": 1})
        if query == len(trace) - 1:
            fig.add_annotation(x=query, y=0.5, text=LAST, textangle=-90, font={"size": 11}, showarrow=False)
    return fig


LAST = "nothing follows yet"


def followed(trace: Trace, query: int, key: int | None = None) -> go.Figure:
    """Attention rollout: where what ends at the query began, as bars over the tokens up to it; they sum to 1."""
    weights = rollout(trace, query)[: query + 1]
    strongest = int(weights.argmax())
    tokens = trace.tokens[: query + 1]
    colors = [SELECTED if i == key else RESIDUAL for i in range(len(tokens))]
    hover = "from %{x}<br>share %{y:.3f}<extra></extra>"
    return figure(
        go.Bar(x=positions(tokens), y=weights, marker={"color": colors}, hovertemplate=hover),
        alt=(
            f"Attention rollout of {quoted(trace.tokens[query])} at position {query}: most, "
            f"{number(weights[strongest])}, from {quoted(tokens[strongest])} at {strongest}."
        ),
        xaxis={**token_axis(tokens, "token", most=24), "tickangle": -60},
        yaxis={"rangemode": "tozero", "title": {"text": "share, of 1"}},
        bargap=0.15,
    )


def formula(trace: Trace, selection: Selection) -> str:
    query, config = selection.query, trace.config
    token_id, rival_id = explained(trace, selection)
    taken = attribution(trace, query, token_id, rival_id)
    sums = {"token": taken.token} | ({"position": taken.positions} if "position_embed" in trace else {})
    sums |= {"heads": taken.heads.sum()} | ({"biases of W_O": taken.biases.sum()} if config.bias else {})
    sums |= {"feed-forward": taken.feed_forward.sum()} | ({"β": taken.shift} if config.norm == "layernorm" else {})
    plain = next_token(trace, query).plain
    added = " + ".join(f"{name} {number(part)}" for name, part in sums.items())
    return (
        f"after {quoted(trace.tokens[query])} ({query}): probability of {quoted(trace.vocabulary[token_id])} "
        f"= e^logit / Σ e^logits = {number(plain[token_id])}, rank {selection.target:,}\n"
        f"{logit_of(trace, token_id, rival_id)} = {added} = {number(taken.total)}\n"
        f"captured {number(taken.logit)}, off by {number(taken.error)}; {norms(trace, query)}"
        f"{TIED * config.tie_embeddings}"
    )


def norms(trace: Trace, query: int) -> str:
    """How lens and parts deal with the model's norms."""
    if trace.config.norm_placement == "post":
        return (
            "each part goes through every norm after it, divided by what the whole was\n"
            "the lens reads the stream as each norm leaves it, as the unembedding does in the end (post-norm)"
        )
    squares = "var x" if trace.config.norm == "layernorm" else "mean x²"
    scale = norm_scale(trace, trace[f"blocks.{trace.config.num_layers - 1}.resid_post"][query])
    return f"each part goes through the final norm, divided by the whole’s √({squares} + ε) = {number(scale)}"


TIED = "\nembedding and unembedding are one table here, so that before the first block most tokens predict themselves"


VIEW = View(
    name="prediction",
    title="Prediction",
    words=(
        "What would the model say next if it stopped early? Each cell below has the likeliest next token after the "
        "token of that column, read off at the depth of that row (the logit lens). Further down, the score of one next "
        "token, its logit, is taken apart into what every part of the model added to it (direct logit attribution). "
        "Choose which token to explain, and against which other: what they differ by decides which is likelier."
    ),
    formula=formula,
    needs=("embed", "blocks.*.resid_post", "blocks.*.attn.pattern", "blocks.*.attn.z", "blocks.*.ffn.out", "logits"),
    otherwise=lambda config: "Too little was captured of this model to follow its prediction.",
    controls=("query", "target", "rival", "lens"),
    panels=(
        Panel(
            name="lens",
            title="The likeliest next token at every depth (logit lens): from the embedding down to the last block",
            draw=lambda trace, s: lens(trace, s.query, explained(trace, s)[0], s.lens),
            selects={"x": "query"},
            height=480,
            min_width=880,
        ),
        Panel(
            name="path",
            title="The explained token's probability, depth by depth",
            draw=lambda trace, s: path(trace, s.query, *explained(trace, s)),
            height=320,
            width="half",
        ),
        Panel(
            name="rollout",
            title="Where it came from, by attention alone (attention rollout)",
            draw=lambda trace, s: followed(trace, s.query, s.key),
            selects={"x": "key"},
            height=320,
            width="half",
        ),
        Panel(
            name="parts",
            title="What each part added to the logit (direct logit attribution)",
            draw=lambda trace, s: parts(trace, s.query, *explained(trace, s), s.layer),
            selects={"customdata": "layer"},
            height=360,
            width="half",
        ),
        Panel(
            name="heads",
            title="The blue bars, head by head",
            draw=lambda trace, s: heads(trace, s.query, *explained(trace, s), s.layer, s.head),
            selects={"x": "head", "y": "layer"},
            height=360,
            width="half",
        ),
        Panel(
            name="actual",
            title="The token that does come next: its probability and rank, position by position",
            draw=lambda trace, s: actual(trace, s.query),
            selects={"x": "query"},
            height=360,
            min_width=640,
        ),
    ),
)
