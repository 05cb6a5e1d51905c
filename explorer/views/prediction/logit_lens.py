"""Figures over depth and along the text: the logit lens, trajectories, actual next tokens and attention rollout."""

import numpy as np

from explorer.analysis.logit_lens import (
    LENSES,
    depth_names,
    lens_summaries,
    single_token_ranks,
    token_probabilities,
    token_ranks,
)
from explorer.analysis.next_token import actual_token_ranks, surprisal
from explorer.analysis.token_contributions import attention_rollout
from explorer.architecture.residual_stream import block_layout, has_final_norm
from explorer.explain.notation import format_number, quote_token
from explorer.state.selection import Selection
from explorer.tracing.comparison import Comparison
from explorer.tracing.trace import Trace
from explorer.translations import N_, _, translate
from explorer.views import graph_objects as go
from explorer.views.figure_template import FigureTemplate, each, extend, text, value
from explorer.views.style import (
    MONO,
    RESIDUAL,
    SELECTED,
    column_band,
    column_frame,
    label,
    numbered_axis,
    position_labels,
    token_axis,
)
from explorer.views.two_run_figures import subtract_figures

MAX_POSITIONS = 16  # at once, so that every cell has room for its token
MAX_WHOLE_POSITIONS = 24  # of a text that is shown whole
MIN_POSITIONS = 4  # however large the model is
MAX_CLICK_MACS = 4e9  # of numbers, that a click has time for


def visible_positions(trace: Trace, query: int) -> range:
    """Return the page of positions that contains the query; the last page is full. A click on a cell keeps the page.

    A short text is one page.
    """
    if len(trace) <= MAX_WHOLE_POSITIONS and len(trace) * lens_macs_per_position(trace) <= MAX_CLICK_MACS:
        return range(len(trace))
    size = MIN_POSITIONS
    while size < MAX_POSITIONS and 2 * size * lens_macs_per_position(trace) <= MAX_CLICK_MACS:
        size *= 2
    start = max(0, min(query // size * size, len(trace) - size))
    return range(start, min(len(trace), start + size))


def lens_macs_per_position(trace: Trace) -> int:
    """Return the multiply-accumulates of the lens for one position."""
    return len(depth_names(trace)) * trace.config.vocab_size * trace.config.d_model


MAX_ROW_CHARS = 110  # of all tokens written in a row of cells


def lens_map(trace: Trace, query: int, token_id: int, kind: str = "probability") -> go.Figure:
    """Draw the most probable next token by depth (row) and position (column), coloured by one of `LENSES`.

    In a long run, 16 positions around the query, fewer for a large model.

    Args:
        token_id: the target token.
    """
    page = visible_positions(trace, query)
    summaries = lens_summaries(trace, page)
    names = depth_names(trace)
    target_probs = token_probabilities(trace, page, token_id)
    target_ranks = single_token_ranks(trace, page, token_id)
    title = _("after this token")
    if len(page) < len(trace):
        title = _(
            "after this token ({first} to {last} of {total}: choose another token above for the others)",
            first=page.start,
            last=page[-1],
            total=len(trace),
        )
    return LENS_FIGURE.draw(
        **lens_heatmap_colours(trace, kind, summaries, target_probs, target_ranks),
        page=list(page),
        names=names,
        likeliest=format_tokens(trace, summaries.top[..., 0], MAX_ROW_CHARS // len(page)),
        hover=lens_cell_hover(trace, page, token_id, summaries, target_probs, target_ranks),
        depths=len(names),
        positions=len(page),
        colour=translate(LENSES[kind]),
        token=quote_token(trace.tokens[query]),
        last=quote_token(trace.vocabulary[summaries.top[-1, query - page.start, 0]]),
        tokens=numbered_axis(trace.tokens, title, page),
        range=[page.start - 0.5, page.stop - 0.5],
        frame=column_frame(query, len(names)),
    ).set_meta(numbers="customdata")


LENS_FIGURE = FigureTemplate(
    alt=text(
        N_(
            "Logit lens: the likeliest next token at {depths} depths after {positions} positions, coloured by "
            "{colour}. After {token} it is {last} in the end."
        )
    ),
    traces=[
        go.Heatmap(
            x=value("page"),
            y=value("names"),
            z=value("shades"),
            zmin=0,
            zmax=value("most"),
            colorbar=value("colorbar"),
            text=value("likeliest"),
            texttemplate="%{text}",
            textfont={"family": MONO, "size": 10.5, "weight": 600},
            hovertext=value("hover"),
            hovertemplate="%{hovertext}<extra></extra>",
            customdata=value("numbers"),
            xgap=1,
            ygap=1,
        )
    ],
    layout={
        "xaxis": extend("tokens", range=value("range")),
        "yaxis": {
            "type": "category",
            "autorange": "reversed",
            "showgrid": False,
            "title": {"text": text(N_("depth"))},
            "dtick": 1,
        },
        "shapes": [value("frame")],
    },
)


def subtract_lenses(first: go.Figure, second: go.Figure, comparison: Comparison, title: str) -> go.Figure:
    """Return A − B of two lenses; each cell has A's most probable token, and below it B's if that is another.

    Raises:
        NoDifferenceError: see `subtract_figures`.
    """
    fig = subtract_figures(first, second, comparison, title, between_tokens="<br>")  # as in the cells
    ((trace, *_others), layout), lens_a, lens_b = (
        fig.traces_and_layout,
        *(lens.traces_and_layout[0][0] for lens in (first, second)),
    )
    rows = dict(zip(lens_b["y"], lens_b["text"], strict=True))
    columns = {position: column for column, position in enumerate(lens_b["x"])}
    aligned = [columns.get(comparison.alignment.partners[position]) for position in lens_a["x"]]

    def token_of_b(name: str, column: int) -> str:
        index = aligned[column]
        return "" if name not in rows or index is None else rows[name][index]

    pairs = [
        [(token, token_of_b(name, column)) for column, token in enumerate(row)]
        for name, row in zip(lens_a["y"], lens_a["text"], strict=True)
    ]
    cell_texts = [["" if not b else a if a == b else f"{a}<br>{b}" for a, b in row] for row in pairs]
    hovers = [[_("most probable in A: {a}, in B: {b}", a=a, b=b or "–") for a, b in row] for row in pairs]
    words = {"text": cell_texts, "texttemplate": "%{text}", "textfont": {"family": MONO, "size": 11.5}}
    hover = {"hovertext": hovers, "hovertemplate": trace["hovertemplate"].replace("<extra>", "<br>%{hovertext}<extra>")}
    says = _("after this token; in a cell A’s token, below it B’s if another")
    if translate(LENSES["target"]) in trace["colorbar"]["title"]["text"]:
        says = _(
            "after this token; in a cell A’s token, below it B’s if another; colour: the explained token’s probability"
        )
    axis = {**layout["xaxis"], "title": {"text": says}}
    return fig.with_traces_and_layout([trace | words | hover], {**layout, "xaxis": axis})


def select_common_token(
    comparison: Comparison, first: tuple[Trace, Selection], second: tuple[Trace, Selection]
) -> tuple[tuple[Trace, Selection], ...]:
    """Return the runs with the explained token's lens for ranks, and where the likeliest tokens of A and B differ.

    Ranks on a scale of orders of magnitude, and probabilities of different tokens, have no difference that means
    anything.
    """
    runs, lens = (first, second), first[1].option("lens")
    if lens not in ("rank", "probability") or (lens == "probability" and _have_same_likeliest_tokens(comparison, runs)):
        return runs
    return tuple((trace, selection.replace(lens="target")) for trace, selection in runs)


def _have_same_likeliest_tokens(comparison: Comparison, runs: tuple[tuple[Trace, Selection], ...]) -> bool:
    texts = []
    for trace, selection in runs:
        page = visible_positions(trace, selection.query)
        likeliest = lens_summaries(trace, page).top[..., 0].T
        texts.append({at: [trace.vocabulary[i] for i in ids] for at, ids in zip(page, likeliest, strict=True)})
    of_a, of_b = texts
    partners = comparison.alignment.partners
    return all(of_b.get(partners[at], tokens) == tokens for at, tokens in of_a.items())


def lens_heatmap_colours(
    trace: Trace, kind: str, summaries, target_probs: np.ndarray, target_ranks: np.ndarray
) -> dict:
    """Return the heatmap's numbers, shades and colour bar: more probable is darker; for entropy, more uncertain."""
    size = trace.config.vocab_size
    bar = {"title": {"text": translate(LENSES[kind]), "side": "right"}}
    if kind == "rank":  # its logarithm, from the last to the first
        tick_ranks = [10**power for power in range(len(str(size)))]
        ticks = {"tickvals": np.log(size / np.array(tick_ranks)), "ticktext": [f"{rank:,}" for rank in tick_ranks]}
        shades = np.log(size / target_ranks)
        return {"numbers": target_ranks, "shades": shades, "most": np.log(size), "colorbar": bar | ticks}
    if kind == "entropy":
        numbers, most = summaries.entropy, np.log2(size)
    else:
        numbers, most = target_probs if kind == "target" else summaries.probabilities[..., 0], 1
    return {"numbers": numbers, "shades": numbers, "most": most, "colorbar": bar}


def format_tokens(trace: Trace, ids: np.ndarray, max_chars: int) -> list[list[str]]:
    """Return tokens as Plotly texts, each formatted once."""
    texts = {i: label(trace.vocabulary[i], max_chars) for i in np.unique(ids)}
    return [[texts[i] for i in row] for row in ids]


def lens_cell_hover(
    trace: Trace, page: range, token_id: int, summaries, target_probs: np.ndarray, target_ranks: np.ndarray
) -> list[list[str]]:
    """Return the hover text of each cell."""
    names = {i: label(trace.vocabulary[i]) for i in np.unique(summaries.top)}
    target = label(trace.vocabulary[token_id])

    def cell_text(depth: int, column: int) -> str:
        likeliest = zip(summaries.top[depth, column], summaries.probabilities[depth, column], strict=True)
        lines = [f"{rank}. {names[i]}  {p:.3f}" for rank, (i, p) in enumerate(likeliest, 1)]
        probability = format_number(target_probs[depth, column])
        rank = target_ranks[depth, column]
        last = _("explained: {token}  {probability}, rank {rank:,}", token=target, probability=probability, rank=rank)
        first = _("after {token}, {depth}", token=token_labels[column], depth=labels[depth])
        entropy = _("entropy {bits:.2f} bits", bits=summaries.entropy[depth, column])
        return "<br>".join([first, *lines, entropy, last])

    token_labels = position_labels(trace.tokens)[page.start : page.stop]
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


def lens_sentence(trace: Trace, selection: Selection) -> str:
    """Return from which depth on the likeliest token at the end is so, after the query."""
    query, page = selection.query, visible_positions(trace, selection.query)
    first_by_depth = lens_summaries(trace, page).top[:, query - page.start, 0]
    token_id = first_by_depth[-1]
    others = np.flatnonzero(first_by_depth != token_id)
    sums = list(block_layout(trace.config).sums.values())
    layer, added = divmod(int(others[-1]) if len(others) else -1, len(sums))  # of the depth after the last other
    at_every_depth = N_("After {query}, the likeliest is {token}, at every depth.")
    template = FIRST_FROM[sums[added]] if len(others) else at_every_depth
    first = translate(
        template,
        query=quote_token(trace.tokens[query]),
        token=quote_token(trace.vocabulary[token_id]),
        layer=layer,
    )
    return f"{first} {translate(LENS_CELLS if has_final_norm(trace.config) else LENS_CELLS_WITHOUT_NORM)}"


FIRST_FROM = {
    ("attn",): N_("After {query}, the likeliest is {token}, from the attention of layer {layer} on."),
    ("ffn",): N_("After {query}, the likeliest is {token}, from the feed-forward of layer {layer} on."),
    ("attn", "ffn"): N_("After {query}, the likeliest is {token}, from layer {layer} on."),
}
LENS_CELLS = N_("Each cell: the likeliest next token there, after the final norm (logit lens).")
LENS_CELLS_WITHOUT_NORM = N_("Each cell: the likeliest next token there (logit lens).")


def token_trajectory(trace: Trace, query: int, token_id: int, contrast_id: int | None = None) -> go.Figure:
    """Draw the probability of the target and of the contrast token at every depth after the query."""
    names = depth_names(trace)
    indices = np.arange(len(names))
    page, query_range = visible_positions(trace, query), range(query, query + 1)
    ids = tuple(i for i in (token_id, contrast_id) if i is not None)
    token_probs = {
        i: token_probabilities(trace, page, i)[:, query - page.start] for i in ids
    }  # the lens above has read that page
    depth_ranks = dict(zip(ids, token_ranks(trace, query_range, ids)[..., 0], strict=True))
    lines = []
    for i, color, dash in ((token_id, SELECTED, "solid"), (contrast_id, RESIDUAL, "dash")):
        if i is None:
            continue
        points = zip(depth_labels(trace), depth_ranks[i], token_probs[i], strict=True)
        hover = [
            _(
                "{depth}<br>probability {probability}, rank {rank:,}",
                depth=depth_label,
                probability=format_number(p),
                rank=rank,
            )
            for depth_label, rank, p in points
        ]
        heights = np.maximum(token_probs[i], MIN_DRAWN_PROBABILITY)
        name = f"“{label(trace.vocabulary[i])}”"
        lines.append(
            {
                "drawn": heights,
                "numbers": token_probs[i],
                "line": {"color": color, "dash": dash},
                "name": name,
                "hover": hover,
            }
        )
    size = trace.config.vocab_size
    is_clipped = min(chance.min() for chance in token_probs.values()) < MIN_DRAWN_PROBABILITY
    return PATH_FIGURE.draw(
        depths=indices,
        names=names,
        lines=lines,
        ends=[0, len(names) - 1],
        uniform=[1 / size, 1 / size],
        size=size,
        title=_("probability<br>(what is less is drawn at 10⁻⁹)") if is_clipped else _("probability"),
        token=quote_token(trace.vocabulary[token_id]),
        query=quote_token(trace.tokens[query]),
        first=format_number(token_probs[token_id][0]),
        last=format_number(token_probs[token_id][-1]),
    ).set_meta(numbers="customdata")


PATH_FIGURE = FigureTemplate(
    alt=text(N_("Probability of {token} after {query} by depth: {first} at the embedding, {last} at the end.")),
    traces=[
        each(
            "lines",
            go.Scatter(
                x=value("depths"),
                y=value("drawn"),
                customdata=value("numbers"),
                mode="lines+markers",
                line=value("line"),
                name=value("name"),
                text=value("hover"),
                hovertemplate="%{text}<extra></extra>",
                showlegend=True,
                cliponaxis=False,
            ),
        ),
        go.Scatter(
            x=value("ends"),
            y=value("uniform"),
            customdata=value("uniform"),
            name=text(N_("all {size:,} tokens alike")),
            mode="lines",
            line={"color": RESIDUAL, "width": 1, "dash": "dot"},
            hoverinfo="skip",
        ),
    ],
    layout={
        "xaxis": {
            "tickvals": value("depths"),
            "ticktext": value("names"),
            "title": {"text": text(N_("depth"))},
            "showgrid": False,
        },
        "yaxis": {"type": "log", "dtick": 1, "exponentformat": "power", "title": {"text": value("title")}},
    },
)


MIN_DRAWN_PROBABILITY = 1e-9  # probability that is drawn


def actual_token_plot(trace: Trace, query: int | None = None) -> go.Figure:
    """Draw the probability and rank of the actual next token at every position."""
    actual_probs, rank_values = 2 ** -surprisal(trace)[1:], actual_token_ranks(trace)[1:]  # (T - 1,)
    summary = trace.logits.summary
    top_probabilities = np.exp(summary.likeliest_logits - summary.log_sum_exp[:, None])[:-1]  # (T - 1, 3)
    names, tokens = position_labels(trace.tokens), [label(token) for token in trace.tokens]
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
    frame = [] if query is None else [{**column_band(query), "yref": "paper"}]
    note = {"x": query, "y": 0.5, "text": _("nothing follows yet"), "textangle": -90, "font": {"size": 11}}
    return ACTUAL_FIGURE.draw(
        labels=names[:-1],
        probabilities=actual_probs,
        ranks=rank_values,
        hover=hover_texts,
        alt=_(
            "Probability and rank of the token that comes next after each of {positions} positions: {first} times the "
            "model’s likeliest, median probability {median}.",
            positions=len(hover_texts),
            first=int((rank_values == 1).sum()),
            median=format_number(np.median(actual_probs)),
        )
        if hover_texts
        else _("Only one token: nothing follows yet."),
        tokens=token_axis(trace.tokens),
        range=[-0.5, len(trace) - 0.5],
        rank_range=[np.log10(trace.config.vocab_size), -0.3],
        frames=frame,
        notes=[note | {"showarrow": False}] if query == len(trace) - 1 else [],
    )


ACTUAL_FIGURE = FigureTemplate(
    alt=value("alt"),
    traces=[
        go.Bar(
            x=value("labels"),
            text=value("hover"),
            hovertemplate="%{text}<extra></extra>",
            showlegend=False,
            y=value("probabilities"),
            textposition="none",
        ),
        go.Scatter(
            x=value("labels"),
            text=value("hover"),
            hovertemplate="%{text}<extra></extra>",
            showlegend=False,
            y=value("ranks"),
            yaxis="y2",
            mode="markers",
            marker={"color": RESIDUAL, "size": 6},
        ),
    ],
    layout={
        "xaxis": extend("tokens", title={"text": text(N_("after this token"))}, range=value("range"), anchor="y2"),
        "yaxis": {"range": [0, 1], "domain": [0.42, 1], "title": {"text": text(N_("probability"))}},
        "yaxis2": {
            "type": "log",
            "range": value("rank_range"),
            "domain": [0, 0.36],
            "dtick": 1,
            "tickformat": "~g",
            "title": {"text": text(N_("rank"))},
        },
        "shapes": value("frames"),
        "annotations": value("notes"),
    },
)


def rollout_bars(trace: Trace, query: int, key: int | None = None) -> go.Figure:
    """Draw attention rollout from the query as bars over the tokens up to it; they sum to 1."""
    weights = attention_rollout(trace, query)[: query + 1]
    strongest = int(weights.argmax())
    tokens = trace.tokens[: query + 1]
    return ROLLOUT_FIGURE.draw(
        labels=position_labels(tokens),
        weights=weights,
        colors=[SELECTED if i == key else RESIDUAL for i in range(len(tokens))],
        token=quote_token(trace.tokens[query]),
        position=query,
        share=format_number(weights[strongest]),
        origin=quote_token(tokens[strongest]),
        strongest=strongest,
        tokens=token_axis(tokens, max_labels=32),
    )


ROLLOUT_FIGURE = FigureTemplate(
    alt=text(N_("Attention rollout of {token} at position {position}: most, {share}, from {origin} at {strongest}.")),
    traces=[
        go.Bar(
            x=value("labels"),
            y=value("weights"),
            marker={"color": value("colors")},
            hovertext=value("labels"),
            hovertemplate=text(N_("from %{hovertext}<br>share %{y:.3f}<extra></extra>")),
        )
    ],
    layout={
        "xaxis": extend(
            "tokens",
            title={
                "text": text(
                    N_(
                        "token<br>(assumed of every layer: half stays, along the stream,<br>half comes from where its "
                        "heads look on average)"
                    )
                )
            },
        ),
        "yaxis": {"rangemode": "tozero", "title": {"text": text(N_("share, of 1"))}},
    },
)
