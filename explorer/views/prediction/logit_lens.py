"""The prediction view's pictures of depth: the logit lens, and one token's way through it."""

import numpy as np

from explorer.analysis.lens import LENSES, depths, ranks, ranks_of, readings, tracked
from explorer.architecture.layout import layout
from explorer.explain.notation import number, quoted
from explorer.language import N_, _, look_up
from explorer.tracing.trace import Trace
from explorer.views import graph_objects as go
from explorer.views.prediction.pages import page_of
from explorer.views.style import MONO, RESIDUAL, SELECTED, figure, label, numbered_axis, positions

MOST_CHARACTERS = 110  # of all tokens written in a row of cells


def lens(trace: Trace, query: int, token_id: int, kind: str = "probability") -> go.Figure:
    """The likeliest next token after every position, row = depth, column = position, coloured by one of `LENSES`.

    Of a long run, 16 positions about the query, fewer of a large model.

    Args:
        token_id: the explained token.
    """
    shown = page_of(trace, query)
    read = readings(trace, shown)
    names = depths(trace)
    chances = tracked(trace, shown, token_id)
    places = ranks(trace, shown, token_id) if kind == "rank" else None
    title = _("after this token")
    if len(shown) < len(trace):
        title = _(
            "after this token ({first} to {last} of {total})", first=shown.start, last=shown[-1], total=len(trace)
        )
    last = read.top[-1, query - shown.start, 0]
    fig = figure(
        go.Heatmap(
            x=list(shown),
            y=names,
            **colours(trace, kind, read, chances, places),
            autocolorscale=True,
            text=written(trace, read.top[..., 0], MOST_CHARACTERS // len(shown)),
            texttemplate="%{text}",
            textfont={"family": MONO, "size": 11, "weight": 600},
            hovertext=told(trace, shown, token_id, read, chances, places),
            hovertemplate="%{hovertext}<extra></extra>",
            xgap=1,
            ygap=1,
        ),
        alt=_(
            "Logit lens: the likeliest next token at {depths} depths after {positions} positions, coloured by "
            "{colour}. After {token} it is {last} in the end.",
            depths=len(names),
            positions=len(shown),
            colour=look_up(LENSES[kind]),
            token=quoted(trace.tokens[query]),
            last=quoted(trace.vocabulary[last]),
        ),
        xaxis={
            **numbered_axis(trace.tokens, title, shown),
            "range": [shown.start - 0.5, shown.stop - 0.5],
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


def colours(trace: Trace, kind: str, read, chances: np.ndarray, places: np.ndarray | None) -> dict:
    """The heatmap's values and colour bar: the fuller the colour, the likelier; or for entropy the more open."""
    size = trace.config.vocab_size
    bar = {"title": {"text": look_up(LENSES[kind]), "side": "right"}}
    if kind == "rank":  # its logarithm, from the last to the first
        shown = [10**power for power in range(len(str(size)))]
        ticks = {"tickvals": np.log(size / np.array(shown)), "ticktext": [f"{rank:,}" for rank in shown]}
        return {"z": np.log(size / places), "zmin": 0, "zmax": np.log(size), "colorbar": bar | ticks}
    if kind == "entropy":
        return {"z": read.entropy, "zmin": 0, "zmax": np.log2(size), "colorbar": bar}
    return {"z": chances if kind == "target" else read.probabilities[..., 0], "zmin": 0, "zmax": 1, "colorbar": bar}


def written(trace: Trace, ids: np.ndarray, longest: int) -> list[list[str]]:
    """Tokens as plotly texts, each made once."""
    texts = {i: label(trace.vocabulary[i], longest) for i in np.unique(ids)}
    return [[texts[i] for i in row] for row in ids]


def told(trace: Trace, shown: range, token_id: int, read, chances: np.ndarray, places) -> list[list[str]]:
    """What hovering over each cell tells."""
    names = {i: label(trace.vocabulary[i]) for i in np.unique(read.top)}
    explained = label(trace.vocabulary[token_id])

    def cell(depth: int, column: int) -> str:
        likeliest = zip(read.top[depth, column], read.probabilities[depth, column], strict=True)
        lines = [f"{rank}. {names[i]}  {p:.3f}" for rank, (i, p) in enumerate(likeliest, 1)]
        chance = number(chances[depth, column])
        if places is None:
            last = _("explained: {token}  {probability}", token=explained, probability=chance)
        else:
            rank = places[depth, column]
            last = _("explained: {token}  {probability}, rank {rank:,}", token=explained, probability=chance, rank=rank)
        first = _("after {token}, {depth}", token=before[column], depth=where[depth])
        entropy = _("entropy {bits:.2f} bits", bits=read.entropy[depth, column])
        return "<br>".join([first, *lines, entropy, last])

    before = positions(trace.tokens)[shown.start : shown.stop]
    where = depths_in_words(trace)
    return [[cell(depth, column) for column in range(len(shown))] for depth in range(len(where))]


def depths_in_words(trace: Trace) -> list[str]:
    """Where the lens reads, as within a sentence."""
    layers, sums = range(trace.config.num_layers), layout(trace.config).sums.values()
    return [_("at the embedding"), *(look_up(AFTER[added], layer=layer) for layer in layers for added in sums)]


# sublayers that are added at once -> where that is
AFTER = {
    ("attn",): N_("after the attention of layer {layer}"),
    ("ffn",): N_("after the feed-forward of layer {layer}"),
    ("attn", "ffn"): N_("after attention and feed-forward of layer {layer}"),
}


def path(trace: Trace, query: int, token_id: int, rival_id: int | None = None) -> go.Figure:
    """The probability of the explained token, and of its rival, at every depth after the query."""
    names = depths(trace)
    across = np.arange(len(names))
    page, here = page_of(trace, query), range(query, query + 1)
    ids = tuple(i for i in (token_id, rival_id) if i is not None)
    chances = {i: tracked(trace, page, i)[:, query - page.start] for i in ids}  # the lens above has read that page
    places = dict(zip(ids, ranks_of(trace, here, ids)[..., 0], strict=True))
    traces = []
    for i, color, dash in ((token_id, SELECTED, "solid"), (rival_id, RESIDUAL, "dash")):
        if i is None:
            continue
        told = zip(depths_in_words(trace), places[i], chances[i], strict=True)
        traces.append(
            go.Scatter(
                x=across,
                y=np.maximum(chances[i], FAINTEST),
                mode="lines+markers",
                line={"color": color, "dash": dash},
                name=f"“{label(trace.vocabulary[i])}”",
                text=[
                    _(
                        "{depth}<br>probability {probability}, rank {rank:,}",
                        depth=where,
                        probability=number(p),
                        rank=rank,
                    )
                    for where, rank, p in told
                ],
                hovertemplate="%{text}<extra></extra>",
                showlegend=True,
            )
        )
    size = trace.config.vocab_size
    alike = {"x": [0, len(names) - 1], "y": [1 / size, 1 / size], "name": _("all {size:,} tokens alike", size=size)}
    traces.append(
        go.Scatter(**alike, mode="lines", line={"color": RESIDUAL, "width": 1, "dash": "dot"}, hoverinfo="skip")
    )
    fainter = min(chance.min() for chance in chances.values()) < FAINTEST
    title = _("probability<br>(what is less is drawn at 10⁻⁹)") if fainter else _("probability")
    ends = (chances[token_id][0], chances[token_id][-1])
    return figure(
        traces,
        alt=_(
            "Probability of {token} after {query} by depth: {first} at the embedding, {last} at the end.",
            token=quoted(trace.vocabulary[token_id]),
            query=quoted(trace.tokens[query]),
            first=number(ends[0]),
            last=number(ends[1]),
        ),
        xaxis={
            "tickvals": across,
            "ticktext": names,
            "tickangle": -60,
            "title": {"text": _("depth")},
            "showgrid": False,
        },
        yaxis={"type": "log", "dtick": 1, "exponentformat": "power", "title": {"text": title}},
    )


FAINTEST = 1e-9  # probability that is drawn
