"""Figures of tokens as vectors: their embeddings, nearest neighbours and principal components."""

from collections.abc import Sequence

import numpy as np

from explorer.analysis.embedding import embedding_parts, nearest_tokens, residual_pca
from explorer.architecture.formulas import embedding_scale_formula
from explorer.explain.notation import format_number, quote_token
from explorer.tracing.trace import Trace
from explorer.translations import N_, _, translate
from explorer.views import graph_objects as go
from explorer.views.figure_template import FigureTemplate, each, extend, text, value
from explorer.views.intervention_effects import annotate_empty
from explorer.views.style import EMBEDDING, MONO, RESIDUAL, SELECTED, figure, label, position_labels

MAX_NEIGHBOURS = 15
MARGIN = {"t": 8}  # nothing stands above the plot


def vector_bars(trace: Trace, query: int, dim: int | None = None) -> go.Figure:
    """Draw the token’s embedding as bars over its dimensions.

    With added positions: both summands above their sum, on one scale.
    """
    parts = embedding_parts(trace, query)
    times = embedding_scale_formula(trace.config)
    rows = {_("embedding × {factor}", factor=times) if times else _("embedding"): parts.row * parts.scale}
    if parts.position is not None:
        rows |= {_("position"): parts.position, _("their sum"): parts.total}
    largest = float(max(np.abs(row).max() for row in rows.values())) or 1.0
    bars, axes, has_chosen = [], {}, dim is not None and dim < trace.config.d_model
    for i, (name, row) in enumerate(rows.items()):
        top, share = 1 - i / len(rows), 1 / len(rows)
        axes[f"yaxis{i + 1}" if i else "yaxis"] = {
            "domain": [max(0.0, top - share + 0.03), top],
            "range": [-1.05 * largest, 1.05 * largest],
            "title": {"text": name},
            "nticks": 5,
        }
        row_bars = {"name": name, "axis": f"y{i + 1}" if i else "y"}
        bars.append({"dims": np.arange(len(row)), "values": row, "marker": {"color": EMBEDDING}, **row_bars})
        if has_chosen:
            bars.append({"dims": [dim], "values": [row[dim]], "marker": {"color": SELECTED}, **row_bars})
    return VECTOR_FIGURE.draw(
        bars=bars,
        axes=axes,
        token=quote_token(trace.tokens[query]),
        position=query,
        dimensions=trace.config.d_model,
        least=format_number(parts.total.min()),
        most=format_number(parts.total.max()),
        parts=", ".join(rows),
        anchor=f"y{len(rows)}" if len(rows) > 1 else "y",
        range=[-1, trace.config.d_model],
        gap=0.15 if trace.config.d_model <= 256 else 0,
    )


VECTOR_FIGURE = FigureTemplate(
    alt=text(
        N_("Embedding of {token} at position {position} in {dimensions} dimensions, {least} to {most}: {parts}."),
        *("token", "position", "dimensions", "least", "most", "parts"),
    ),
    traces=[
        each(
            "bars",
            {
                "type": "bar",
                "x": value("dims"),
                "y": value("values"),
                "yaxis": value("axis"),
                "marker": value("marker"),
                "hovertemplate": text(N_("{name}, dimension %{{x}}<br>%{{y:.4g}}<extra></extra>"), "name"),
            },
        )
    ],
    layout=extend(
        "axes",
        xaxis={
            "title": {"text": text(N_("dimension"))},
            "showgrid": False,
            "anchor": value("anchor"),
            "range": value("range"),
        },
        margin=MARGIN,
        barmode="overlay",
        bargap=value("gap"),
        hovermode="x",  # a thin bar is hard to hit
        showlegend=False,
    ),
)


def nearest_tokens_bars(trace: Trace, query: int) -> go.Figure:
    """Draw the tokens of the vocabulary with the nearest embeddings, as bars of their cosine."""
    ids, cosines = nearest_tokens(trace, trace.token_ids[query], MAX_NEIGHBOURS)
    rows = np.arange(len(ids))
    texts = [label(trace.vocabulary[i]) for i in ids]
    token = trace.tokens[query]
    few = ", ".join(
        f"{quote_token(trace.vocabulary[i])} {format_number(c)}" for i, c in list(zip(ids, cosines, strict=True))[:3]
    )
    return NEAREST_FIGURE.draw(
        cosines=cosines,
        rows=rows,
        hover=[_("{token}, id {id}", token=text, id=i) for text, i in zip(texts, ids, strict=True)],
        labels=texts,
        token=quote_token(token),
        label=label(token),
        nearest=few,
        range=[min(0.0, float(cosines.min())), 1],
        rows_range=[len(ids) - 0.4, -0.6],
    )


NEAREST_FIGURE = FigureTemplate(
    alt=text(N_("Tokens nearest to {token} by the cosine of their embeddings: {nearest}."), "token", "nearest"),
    traces=[
        {
            "type": "bar",
            "orientation": "h",
            "x": value("cosines"),
            "y": value("rows"),
            "text": value("hover"),
            "textposition": "none",
            "marker": {"color": EMBEDDING},
            "hovertemplate": text(N_("%{text}<br>cosine %{x:.3f}<extra></extra>")),
        }
    ],
    layout={
        "xaxis": {
            "title": {"text": text(N_("cosine similarity with {label}"), "label")},
            "range": value("range"),
        },
        "yaxis": {
            "title": {"text": text(N_("token"))},
            "tickvals": value("rows"),
            "ticktext": value("labels"),
            "tickfont": {"family": MONO, "size": 11},
            "range": value("rows_range"),
            "showgrid": False,
            "zeroline": False,
        },
        "margin": MARGIN,
    },
)


AFTER_BLOCK = N_(
    "{tokens} tokens after block {block} along the two directions in which they differ most, which hold {first} and "
    "{second} of the variance."
)
AS_EMBEDDED = N_(
    "{tokens} tokens as embedded along the two directions in which they differ most, which hold {first} and {second} "
    "of the variance."
)


def pca_plot(trace: Trace, depth: int, query: int, hide_first: bool = False) -> go.Figure:
    """Draw the first two principal components of the tokens' vectors after some blocks.

    Labels that would overlap others are left out; hover texts have them all. The first token, often far from
    all others, can be left out.
    """
    first = int(hide_first and len(trace) > 1)
    pca = residual_pca(trace, depth, first)
    tokens, chosen = trace.tokens[first:], query - first
    x, y = pca.points.T
    texts = [label(token) for token in tokens]
    labelled = readable_labels(pca.points, [len(text) for text in texts], chosen)
    first_share, second_share = (f"{share:.0%}" for share in pca.shares[:2])
    color = RESIDUAL if depth else EMBEDDING
    fig = figure(
        go.Scatter(
            x=x,
            y=y,
            mode="markers+text",
            text=[text if i in labelled else "" for i, text in enumerate(texts)],
            textposition="top center",
            textfont={"family": MONO, "size": 11},
            marker={
                "color": [SELECTED if i == chosen else color for i in range(len(tokens))],
                "size": [11 if i == chosen else 7 for i in range(len(tokens))],
            },
            customdata=np.arange(first, len(trace)),
            hovertext=position_labels(trace.tokens)[first:],
            hovertemplate="%{hovertext}<br>(%{x:.3g}, %{y:.3g})<extra></extra>",
            cliponaxis=False,
        ),
        alt=translate(
            AFTER_BLOCK if depth else AS_EMBEDDED,
            tokens=len(tokens),
            block=depth - 1,
            first=first_share,
            second=second_share,
        ),
        xaxis={"title": {"text": _("component 1 ({share} of the variance)", share=first_share)}},
        yaxis={"title": {"text": _("component 2 ({share})", share=second_share)}},
        margin={"t": 20},
    )
    if not np.isfinite(pca.points).all():
        annotate_empty(
            fig, _("a vector holds something that is not a number (NaN or infinite): there are no directions to show")
        )
    return fig


def readable_labels(points: np.ndarray, label_lengths: Sequence[int], chosen_index: int) -> set[int]:
    """Return the indices of the points (T, 2) whose label above them overlaps no other label and no other point.

    The chosen point always has its label; the others are considered in order. Sizes are those of a plot of 300
    by 320 pixels.

    Args:
        label_lengths: in characters.
    """
    extent = np.maximum(np.ptp(points, axis=0), 1e-12)
    x, y = ((points - points.min(0)) / extent * [300, 320]).T
    widths = 7 * np.array(label_lengths)
    labelled: list[int] = []
    for i in sorted(range(len(points)), key=lambda i: (i != chosen_index, i)):
        overlaps = (np.abs(x[labelled] - x[i]) < (widths[labelled] + widths[i]) / 2) & (np.abs(y[labelled] - y[i]) < 13)
        hidden_points = (
            (np.abs(x - x[i]) < widths[i] / 2 + 4) & (y > y[i] + 1) & (y < y[i] + 20)
        )  # points that it would hide
        if i == chosen_index or not (overlaps.any() or hidden_points.any()):
            labelled.append(i)
    return set(labelled)
