"""Plots that several views share: bars of tokens, of components and of terms, and vectors of positions."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from explorer.analysis.direct_logit_attribution import LogitAttribution, component_value, logit_components
from explorer.architecture.formulas import (
    has_logit_bias_terms,
    logit_bias_terms_label,
    logit_bias_terms_short_label,
    logit_bias_terms_symbols,
)
from explorer.explain.notation import format_contribution, format_number, format_percent
from explorer.tracing.trace import Trace
from explorer.translations import N_, _, translate
from explorer.views import graph_objects as go
from explorer.views.figure_template import FigureTemplate, extend, text, value
from explorer.views.style import (
    ATTENTION,
    EMBEDDING,
    FEED_FORWARD,
    MONO,
    NORM,
    SELECTED,
    cell_frame,
    figure,
    head_map_axes,
    label,
    named_axis,
    note_above,
    position_labels,
    row_band,
    token_axis,
)


def component_bar_data(
    trace: Trace, contributions: LogitAttribution, include_interventions: bool | None = None
) -> Iterator[tuple[str, float, str, str, int | None]]:
    """Yield each bar's axis label, value, colour, description, and layer (None outside layers), from left to right.

    Args:
        include_interventions: whether what interventions add to the stream has a bar; None: if they add
            anything.
    """
    for component, layer in logit_components(trace, has_changes=include_interventions):
        name, colour, description = COMPONENT_TEXTS[component]
        name = translate(name, layer=layer) or logit_bias_terms_symbols(trace.config)
        description = translate(description, layer=layer, count=trace.config.num_heads)
        description = description or logit_bias_terms_label(trace.config)
        yield name, component_value(contributions, component, layer), colour, description, layer


COMPONENT_TEXTS = {  # component -> axis label, colour and description; the texts of "shift" depend on the model
    "token": (N_("embedding"), EMBEDDING, N_("the token’s embedding")),
    "position": (N_("position"), EMBEDDING, N_("the position added to it")),
    "heads": (N_("{layer} attention"), ATTENTION, N_("the {count} heads of layer {layer}")),
    "bias": (N_("{layer} bias"), ATTENTION, N_("the bias of W_O of layer {layer}")),
    "feed_forward": (N_("{layer} feed-forward"), FEED_FORWARD, N_("the feed-forward of layer {layer}")),
    "shift": ("", NORM, ""),
    "changes": (N_("changes"), SELECTED, N_("what the changes of the run put in")),
}
BAR_NUMBERS = {"textposition": "outside", "textangle": 0, "textfont": {"size": 11}, "cliponaxis": False}


def probability_bars(run: str, probabilities: np.ndarray, tokens: list[str], **marker: Any) -> go.Bar:
    """Return horizontal bars of one run's next-token probabilities.

    Args:
        run: its name.
        probabilities: (n,) of the tokens.
        tokens: their texts, from the top.
        marker: Plotly's settings of the bars.
    """
    return go.Bar(
        x=probabilities,
        y=np.arange(len(tokens)),
        orientation="h",
        name=run,
        marker=marker,
        text=[format_number(p) for p in probabilities],
        textposition="outside",
        cliponaxis=False,
        hovertext=tokens,
        hovertemplate=f"%{{hovertext}}<br>{run} %{{x:.4f}}<extra></extra>",
    )


def bar_token_axis(tokens: list[str]) -> dict[str, Any]:
    """Return the settings of the axis of tokens beside horizontal bars, the first token at the top."""
    return named_axis(
        tokens, _("token"), tickfont={"family": MONO, "size": 12}, ticklabelstandoff=6, autorange="reversed"
    )


MAX_BAR_LABELS = 24  # below or above their bars, on end
MAX_CHIPS = 16  # tokens that have room for a chip below and a percentage above their bars
QUIET = "rgba(136, 136, 136, 0.4)"  # RESIDUAL; figure.css colours the text on it
TRACK = "rgba(136, 136, 136, 0.12)"  # RESIDUAL, behind bars and tokens in both themes


def token_bars(
    trace: Trace, shares: np.ndarray, title: str, alt: str, query: int, strongest: int | None = None, first: int = 0
) -> go.Figure:
    """Draw a bar for each token; those of a few tokens with direct labels, of many with an axis.

    Args:
        shares: (N,) in [0, 1], of N tokens beginning with position `first`.
        title: what a bar's height is.
        query: the selected position, whose chip is framed.
        strongest: position of the only bar that is not quiet; None: all have the accent, the query's its own colour.
    """
    tokens = trace.tokens[: first + len(shares)]
    labels, has_chips = position_labels(tokens), len(shares) <= MAX_CHIPS
    positions = range(first, len(tokens))
    highlighted = query if strongest is None else strongest
    if not has_chips and highlighted in positions:
        title = f"{title}: {label(tokens[highlighted])} {format_percent(float(shares[highlighted - first]))}"

    def draw_bars(has_bar: list[bool], **marker: str) -> go.Bar:
        texts = [short_percent(share) if is_drawn else "" for share, is_drawn in zip(shares, has_bar, strict=True)]
        return go.Bar(
            x=labels[first:],
            y=np.where(has_bar, shares, np.nan),
            hovertext=labels[first:],
            hovertemplate="%{hovertext}<br>%{y:.2%}<extra></extra>",
            marker=marker,
            text=texts if has_chips else None,
            textposition="outside",
            textangle=0,
            textfont={"size": 13},
            constraintext="none",
            cliponaxis=False,
        )

    axis = token_axis(tokens, max_labels=MAX_BAR_LABELS)
    chips = [token_chip(label(tokens[i]), labels[i], is_framed=i == query) for i in positions if has_chips]
    return figure(
        [
            draw_bars([i != highlighted for i in positions], **({} if strongest is None else {"color": QUIET})),
            draw_bars([i == highlighted for i in positions], **({"color": SELECTED} if strongest is None else {})),
        ],
        alt=alt,
        xaxis=axis | ({"showticklabels": False, "showline": True} if has_chips else {}),
        yaxis=share_axis(shares) | ({"visible": False} if has_chips else {"nticks": 5}),
        annotations=[*note_above(title), *chips],
        barmode="overlay",
        margin={"l": 0, "r": 8, "t": 36, "b": 36 if has_chips else 8},
        showlegend=False,
    )


def head_map(
    values: np.ndarray,
    chosen: tuple[int, int] | None,
    colours: tuple[float, float],
    scale: str,
    hover: str,
    alt: str,
    format_cell: Callable[[float], str] = format_contribution,
    customdata: np.ndarray | None = None,
) -> go.Figure:
    """Draw a heatmap with a row for each layer and a column for each head.

    Args:
        chosen: layer and head of the cell with a frame.
        colours: the values at both ends of the colour scale.
        scale: what the colours mean.
    """
    return figure(
        go.Heatmap(
            z=values,
            zmin=colours[0],
            zmax=colours[1],
            text=[[format_cell(value) for value in row] for row in values],
            customdata=customdata,
            texttemplate="%{text}" if values.shape[1] <= 12 else None,
            hovertemplate=hover,
            xgap=1,
            ygap=1,
            colorbar={"title": {"text": scale, "side": "right"}},
        ),
        alt=alt,
        shapes=[cell_frame(*chosen)] if chosen else [],
        **head_map_axes(),
    )


def short_percent(share: float) -> str:
    """Format a share in whole percent, never as 0% or 100% if it is not."""
    if np.isnan(share):
        return ""
    if 0 < share < 0.005:
        return "&lt;1%"
    return ">99%" if 0.995 <= share < 1 else f"{share:.0%}"


def token_chip(text: str, column: str, is_framed: bool) -> dict[str, Any]:
    """Return the annotation of a token below its column; `figure_fit.js` sets those on end that have no room."""
    return {
        "name": "chip",
        "text": text,
        "x": column,
        "y": 0,
        "yref": "paper",
        "yanchor": "top",
        "yshift": -6,
        "showarrow": False,
        "font": {"family": MONO, "size": 12},
        "bgcolor": TRACK,
        "borderpad": 4,
        "borderwidth": 2,
        "bordercolor": SELECTED if is_framed else "rgba(0, 0, 0, 0)",
    }


def share_axis(shares: np.ndarray) -> dict[str, Any]:
    """Return the axis of bars, which ends above the longest, with room for its text."""
    largest = float(np.nan_to_num(shares).max(initial=0.0)) or 1.0
    return {"range": [0, 1.1 * largest], "tickformat": ".2~%"}


def score_term_values(terms: np.ndarray) -> dict[str, Any]:
    """Return the values of `score_term_figure`: the parts (n,) of a score, and their sum."""
    return {
        "terms": np.arange(len(terms)),
        "added": terms,
        "parts": len(terms),
        "total": format_number(terms.sum()),
        "frames": [],
    }


def score_term_figure(hover: Any, alt: Any, **xaxis: Any) -> FigureTemplate:
    """Return the figure of the parts of a score as bars, and their sum; `hover` is the template of hover texts."""
    return FigureTemplate(
        alt=alt,
        traces=[
            go.Bar(
                x=value("terms"),
                y=value("added"),
                marker={"color": ATTENTION},
                hovertemplate=hover,
            )
        ],
        layout={
            "xaxis": {"showgrid": False, **xaxis},
            "yaxis": {"title": {"text": text(N_("part of the score"))}},
            "annotations": note_above(text(N_("{count} parts sum to {total}, the score."), count="parts")),
            "shapes": value("frames"),
        },
    )


def position_vector_map(trace: Trace, query: int, dim: int | None = None) -> go.Figure:
    """Draw the vector added at every position of the run."""
    values = trace["position_embed"]  # (T, D)
    largest = float(np.abs(values).max()) or 1.0
    has_dim = dim is not None and dim < values.shape[1]
    return POSITION_VECTORS_FIGURE.draw(
        labels=position_labels(trace.tokens),
        values=values,
        least_colour=-largest,
        most_colour=largest,
        positions=len(values),
        dimensions=values.shape[1],
        least=format_number(values.min()),
        most=format_number(values.max()),
        tokens=token_axis(trace.tokens, max_labels=32),
        frames=[row_band(query), *([cell_frame(query, dim)] if has_dim else [])],
    )


POSITION_VECTORS_FIGURE = FigureTemplate(
    alt=text(N_("What is added at each of {positions} positions, by {dimensions} dimensions: {least} to {most}.")),
    traces=[
        go.Heatmap(
            y=value("labels"),
            z=value("values"),
            zmin=value("least_colour"),
            zmax=value("most_colour"),
            hovertemplate=text(N_("position %{y}, dimension %{x}<br>%{z:.4g}<extra></extra>")),
        )
    ],
    layout={
        "xaxis": {"title": {"text": text(N_("dimension"))}, "showgrid": False},
        "yaxis": extend("tokens", title={"text": text(N_("position"))}, autorange="reversed"),
        "shapes": value("frames"),
    },
)


def colour_legend(trace: Trace) -> str:
    """Name the colours of the bars, each beside a square of it, as Plotly text."""
    names = {
        EMBEDDING: _("embedding and position") if "position_embed" in trace else _("embedding"),
        ATTENTION: _("attention"),
        FEED_FORWARD: _("feed-forward"),
    }
    if has_logit_bias_terms(trace.config):
        names[NORM] = logit_bias_terms_short_label(trace.config)
    return "  ".join(f'<span style="color:{colour}">■</span> {name}' for colour, name in names.items())
