"""Figures over depth: the logit lens, and one token's trajectory through the layers."""

import numpy as np

from explorer.analysis.logit_lens import (
    LENSES,
    depth_names,
    lens_summaries,
    single_token_ranks,
    token_probabilities,
    token_ranks,
)
from explorer.architecture.block_layout import block_layout
from explorer.explain.notation import format_number, quote_token
from explorer.tracing.trace import Trace
from explorer.translations import N_, _, translate
from explorer.views import graph_objects as go
from explorer.views.prediction.lens_pages import visible_page
from explorer.views.style import MONO, RESIDUAL, SELECTED, figure, label, numbered_axis, positions

MAX_ROW_CHARS = 110  # of all tokens written in a row of cells


def lens_map(trace: Trace, query: int, token_id: int, kind: str = "probability") -> go.Figure:
    """Draw the most probable next token by depth (row) and position (column), coloured by one of `LENSES`.

    In a long run, 16 positions around the query, fewer for a large model.

    Args:
        token_id: the target token.
    """
    page = visible_page(trace, query)
    summaries = lens_summaries(trace, page)
    names = depth_names(trace)
    target_probs = token_probabilities(trace, page, token_id)
    target_ranks = single_token_ranks(trace, page, token_id) if kind == "rank" else None
    title = _("after this token")
    if len(page) < len(trace):
        title = _("after this token ({first} to {last} of {total})", first=page.start, last=page[-1], total=len(trace))
    last = summaries.top[-1, query - page.start, 0]
    fig = figure(
        go.Heatmap(
            x=list(page),
            y=names,
            **heatmap_colours(trace, kind, summaries, target_probs, target_ranks),
            autocolorscale=True,
            text=format_tokens(trace, summaries.top[..., 0], MAX_ROW_CHARS // len(page)),
            texttemplate="%{text}",
            textfont={"family": MONO, "size": 11, "weight": 600},
            hovertext=cell_hover(trace, page, token_id, summaries, target_probs, target_ranks),
            hovertemplate="%{hovertext}<extra></extra>",
            xgap=1,
            ygap=1,
        ),
        alt=_(
            "Logit lens: the likeliest next token at {depths} depths after {positions} positions, coloured by "
            "{colour}. After {token} it is {last} in the end.",
            depths=len(names),
            positions=len(page),
            colour=translate(LENSES[kind]),
            token=quote_token(trace.tokens[query]),
            last=quote_token(trace.vocabulary[last]),
        ),
        xaxis={
            **numbered_axis(trace.tokens, title, page),
            "range": [page.start - 0.5, page.stop - 0.5],
        },
        yaxis={
            "type": "category",
            "autorange": "reversed",
            "showgrid": False,
            "title": {"text": _("depth")},
            "dtick": 1,
        },
    )
    column = {"x0": query - 0.5, "x1": query + 0.5, "y0": -0.5, "y1": len(names) - 0.5}
    fig.add_shape(type="rect", **column, line={"color": SELECTED, "width": 2})
    return fig


def heatmap_colours(
    trace: Trace, kind: str, summaries, target_probs: np.ndarray, target_ranks: np.ndarray | None
) -> dict:
    """Return the heatmap's values and colour bar: more probable is more intense; for entropy, more uncertain."""
    size = trace.config.vocab_size
    bar = {"title": {"text": translate(LENSES[kind]), "side": "right"}}
    if kind == "rank":  # its logarithm, from the last to the first
        tick_ranks = [10**power for power in range(len(str(size)))]
        ticks = {"tickvals": np.log(size / np.array(tick_ranks)), "ticktext": [f"{rank:,}" for rank in tick_ranks]}
        return {"z": np.log(size / target_ranks), "zmin": 0, "zmax": np.log(size), "colorbar": bar | ticks}
    if kind == "entropy":
        return {"z": summaries.entropy, "zmin": 0, "zmax": np.log2(size), "colorbar": bar}
    return {
        "z": target_probs if kind == "target" else summaries.probabilities[..., 0],
        "zmin": 0,
        "zmax": 1,
        "colorbar": bar,
    }


def format_tokens(trace: Trace, ids: np.ndarray, max_chars: int) -> list[list[str]]:
    """Return tokens as Plotly texts, each formatted once."""
    texts = {i: label(trace.vocabulary[i], max_chars) for i in np.unique(ids)}
    return [[texts[i] for i in row] for row in ids]


def cell_hover(
    trace: Trace, page: range, token_id: int, summaries, target_probs: np.ndarray, target_ranks
) -> list[list[str]]:
    """Return the hover text of each cell."""
    names = {i: label(trace.vocabulary[i]) for i in np.unique(summaries.top)}
    target = label(trace.vocabulary[token_id])

    def cell_text(depth: int, column: int) -> str:
        likeliest = zip(summaries.top[depth, column], summaries.probabilities[depth, column], strict=True)
        lines = [f"{rank}. {names[i]}  {p:.3f}" for rank, (i, p) in enumerate(likeliest, 1)]
        probability = format_number(target_probs[depth, column])
        if target_ranks is None:
            last = _("explained: {token}  {probability}", token=target, probability=probability)
        else:
            rank = target_ranks[depth, column]
            last = _(
                "explained: {token}  {probability}, rank {rank:,}", token=target, probability=probability, rank=rank
            )
        first = _("after {token}, {depth}", token=token_labels[column], depth=labels[depth])
        entropy = _("entropy {bits:.2f} bits", bits=summaries.entropy[depth, column])
        return "<br>".join([first, *lines, entropy, last])

    token_labels = positions(trace.tokens)[page.start : page.stop]
    labels = depth_labels(trace)
    return [[cell_text(depth, column) for column in range(len(page))] for depth in range(len(labels))]


def depth_labels(trace: Trace) -> list[str]:
    """Return a phrase for each depth that the lens reads."""
    layers, sums = range(trace.config.num_layers), block_layout(trace.config).sums.values()
    return [
        _("at the embedding"),
        *(translate(SUBLAYER_LABELS[added], layer=layer) for layer in layers for added in sums),
    ]


# sublayers that are added at once -> where that is
SUBLAYER_LABELS = {
    ("attn",): N_("after the attention of layer {layer}"),
    ("ffn",): N_("after the feed-forward of layer {layer}"),
    ("attn", "ffn"): N_("after attention and feed-forward of layer {layer}"),
}


def token_trajectory(trace: Trace, query: int, token_id: int, contrast_id: int | None = None) -> go.Figure:
    """Draw the probability of the target and of the contrast token at every depth after the query."""
    names = depth_names(trace)
    indices = np.arange(len(names))
    page, query_range = visible_page(trace, query), range(query, query + 1)
    ids = tuple(i for i in (token_id, contrast_id) if i is not None)
    token_probs = {
        i: token_probabilities(trace, page, i)[:, query - page.start] for i in ids
    }  # the lens above has read that page
    depth_ranks = dict(zip(ids, token_ranks(trace, query_range, ids)[..., 0], strict=True))
    traces = []
    for i, color, dash in ((token_id, SELECTED, "solid"), (contrast_id, RESIDUAL, "dash")):
        if i is None:
            continue
        points = zip(depth_labels(trace), depth_ranks[i], token_probs[i], strict=True)
        traces.append(
            go.Scatter(
                x=indices,
                y=np.maximum(token_probs[i], MIN_DRAWN_PROBABILITY),
                mode="lines+markers",
                line={"color": color, "dash": dash},
                name=f"“{label(trace.vocabulary[i])}”",
                text=[
                    _(
                        "{depth}<br>probability {probability}, rank {rank:,}",
                        depth=depth_label,
                        probability=format_number(p),
                        rank=rank,
                    )
                    for depth_label, rank, p in points
                ],
                hovertemplate="%{text}<extra></extra>",
                showlegend=True,
            )
        )
    size = trace.config.vocab_size
    uniform_line = {
        "x": [0, len(names) - 1],
        "y": [1 / size, 1 / size],
        "name": _("all {size:,} tokens alike", size=size),
    }
    traces.append(
        go.Scatter(**uniform_line, mode="lines", line={"color": RESIDUAL, "width": 1, "dash": "dot"}, hoverinfo="skip")
    )
    is_clipped = min(chance.min() for chance in token_probs.values()) < MIN_DRAWN_PROBABILITY
    title = _("probability<br>(what is less is drawn at 10⁻⁹)") if is_clipped else _("probability")
    ends = (token_probs[token_id][0], token_probs[token_id][-1])
    return figure(
        traces,
        alt=_(
            "Probability of {token} after {query} by depth: {first} at the embedding, {last} at the end.",
            token=quote_token(trace.vocabulary[token_id]),
            query=quote_token(trace.tokens[query]),
            first=format_number(ends[0]),
            last=format_number(ends[1]),
        ),
        xaxis={
            "tickvals": indices,
            "ticktext": names,
            "tickangle": -60,
            "title": {"text": _("depth")},
            "showgrid": False,
        },
        yaxis={"type": "log", "dtick": 1, "exponentformat": "power", "title": {"text": title}},
    )


MIN_DRAWN_PROBABILITY = 1e-9  # probability that is drawn
