"""Activations view: any captured value as a heatmap and a histogram."""

from typing import NamedTuple

import numpy as np

from explorer.analysis.activation_statistics import Statistics, compute_histogram, histogram_share, tap_matrix
from explorer.explain.captured import derive
from explorer.explain.derivation import ClickedPoint, Derivation, get_item
from explorer.explain.notation import format_number, quote_token
from explorer.state.selection import Selection
from explorer.tracing.trace import Trace
from explorer.translations import N_, _, translate
from explorer.views import graph_objects as go
from explorer.views.labels import head_value_label
from explorer.views.style import (
    RESIDUAL,
    SELECTED,
    cell_frame,
    figure,
    position_labels,
    row_band,
    token_axis,
    window_around,
)
from explorer.views.verification import verify_captured
from explorer.views.view import BINS, Panel, View

MAX_COLUMNS, MAX_CELLS = 1024, 3 << 17


class ValueColumnTexts(NamedTuple):
    """Texts about the columns of a value, translated on use: axis titles, hover template and alternative text."""

    all_title: str
    range_title: str
    hover: str
    alt: str

    def title(self, columns: range, width: int) -> str:
        """Return the title of some columns of a value of that width."""
        if len(columns) == width:
            return translate(self.all_title)
        return translate(self.range_title, first=columns.start, last=columns[-1], width=width)


KEYS = ValueColumnTexts(
    N_("key"),
    N_("key ({first} to {last} of {width})"),
    N_("position %{y}, key %{x}<br>%{z:.4g}<extra></extra>"),
    N_("{value}: {tokens} tokens by {width} keys, {least} to {most}."),
)
DIMENSIONS = ValueColumnTexts(
    N_("dimension"),
    N_("dimension ({first} to {last} of {width})"),
    N_("position %{y}, dimension %{x}<br>%{z:.4g}<extra></extra>"),
    N_("{value}: {tokens} tokens by {width} dimensions, {least} to {most}."),
)


def captured_value_heatmap(
    trace: Trace, tap: str, head: int = 0, query: int | None = None, dim: int | None = None, window: int = 0
) -> go.Figure:
    """Draw a captured value as tokens × dimensions; the colour scale is centred at 0 where it takes both signs.

    Of values wider than 1,024 columns, or fewer for many tokens, the columns around `dim` are drawn. `window`
    tokens around the query are visible at first, all where 0.
    """
    values = tap_matrix(trace, tap, head)  # (T, N)
    width = values.shape[1]
    max_columns = MAX_COLUMNS if has_key_columns(tap) else min(MAX_COLUMNS, MAX_CELLS // len(values))
    start = (dim or 0) // max_columns * max_columns
    column_range = range(start, min(start + max_columns, width))
    visible_rows = window_around(query or 0, window, len(trace))
    largest = float(np.abs(values).max()) or 1.0
    signed = values.min() < 0
    if has_key_columns(tap):
        labels, columns = KEYS, position_labels(trace.tokens)[start : column_range.stop]
        xaxis = {**token_axis(trace.tokens, labels.title(column_range, width), visible=column_range)}
    else:
        labels, columns = DIMENSIONS, np.array(column_range)
        xaxis = {"title": {"text": labels.title(column_range, width)}, "showgrid": False}
    frames = [] if query is None else [row_band(query)]
    if query is not None and dim is not None and dim < width:
        frames.append(cell_frame(query, dim))
    return figure(
        go.Heatmap(
            x=columns,
            y=position_labels(trace.tokens),
            z=values[:, start : column_range.stop],
            zmin=-largest if signed else 0,
            zmax=largest,
            hovertemplate=translate(labels.hover),
        ),
        alt=translate(
            labels.alt,
            value=tap,
            tokens=len(values),
            width=width,
            least=format_number(values.min()),
            most=format_number(values.max()),
        ),
        xaxis=xaxis,
        yaxis={
            **token_axis(trace.tokens, _("token"), visible=visible_rows),
            "range": [visible_rows[-1] + 0.5, visible_rows[0] - 0.5],
        },
        shapes=frames,
    )


def has_key_columns(tap: str) -> bool:
    """Return whether the value's columns are key positions."""
    return tap.endswith((".scores", ".pattern"))


def captured_value_histogram(trace: Trace, tap: str, head: int = 0, query: int = 0) -> go.Figure:
    """Draw the distribution of the value's elements, over all tokens and at the query; each sums to 1."""
    values = tap_matrix(trace, tap, head).astype(np.float64)
    traces = []
    for name, subset, color in ((_("all tokens"), values, RESIDUAL), (_("the chosen token"), values[query], SELECTED)):
        edges, shares = compute_histogram(values, subset)
        bars = {"x": (edges[:-1] + edges[1:]) / 2, "y": shares}
        shape = {"mode": "lines", "line": {"shape": "hvh", "color": color}, "fill": "tozeroy"}
        hover = _("about %{x:.3g}: %{y:.1%} of the values<extra></extra>")
        traces.append(go.Scatter(**bars, **shape, name=name, hovertemplate=hover))
    return figure(
        traces,
        alt=_(
            "Histogram of {value}, over all tokens and at {token}.", value=tap, token=quote_token(trace.tokens[query])
        ),
        xaxis={"title": {"text": _("value")}},
        yaxis={"title": {"text": _("share of values")}, "tickformat": ".0%", "rangemode": "tozero"},
    )


def inspect_element(trace: Trace, selection: Selection, point: ClickedPoint) -> Derivation:
    """Derive the clicked element of the selected value."""
    value = trace[selection.tap]
    head = (selection.head * len(value) // trace.config.num_heads,) if value.ndim == 3 else ()
    return derive(trace, selection.tap, (*head, point.row, point.column))


def describe_element(trace: Trace, selection: Selection) -> str:
    """Return the selected element's place, its value and the statistics of the whole array."""
    values = tap_matrix(trace, selection.tap, selection.head)
    token = values[selection.query]
    dim = min(selection.dim, len(token) - 1)
    value = trace[selection.tap]
    statistics = Statistics.from_array(value)
    shape = " × ".join(map(str, value.shape))
    location = _("at {token} ({position})", token=quote_token(trace.tokens[selection.query]), position=selection.query)
    if value.ndim == 3:
        location = f"{location}, {head_value_label(trace.config, value, selection.head)}"
    return _(
        "{value}: {shape} numbers; mean {mean}, standard deviation {std}, RMS {rms}, from {least} to {most}, "
        "{zeros:.1%} zeros\n{place}: length ‖x‖₂ = √Σx² = {length}, element {dim} = {element}",
        value=selection.tap,
        shape=shape,
        mean=format_number(statistics.mean),
        std=format_number(statistics.std),
        rms=format_number(statistics.rms),
        least=format_number(statistics.smallest),
        most=format_number(statistics.largest),
        zeros=statistics.zeros,
        place=location,
        length=format_number(np.linalg.norm(token.astype(np.float64))),
        dim=dim,
        element=format_number(token[dim]),
    )


def activations_sentence(trace: Trace, selection: Selection) -> str:
    """Return how many numbers the selected value has at the query, and their range."""
    values = tap_matrix(trace, selection.tap, selection.head)[selection.query]
    return _(
        "{value} has {count} numbers at {token}, from {least} to {most}. Choose a step: its numbers, and how they are "
        "spread.",
        value=selection.tap,
        count=len(values),
        token=quote_token(trace.tokens[selection.query]),
        least=format_number(values.min()),
        most=format_number(values.max()),
    )


VIEW = View(
    name="activations",
    title=N_("Activations"),
    group="further",
    order=136,
    description=N_(
        "Every step makes a list of numbers for each token. Choose a step: its numbers, a row per token, and how they "
        "are spread."
    ),
    sentence=activations_sentence,
    formula=describe_element,
    required_taps=("blocks.*.resid_post",),
    unavailable_message=lambda config: _("Nothing was captured from this model."),
    controls=("tap", "head", "query", "window"),
    code=("blocks.{layer}",),
    code_lines=("self.resid_post(",),
    panels=(
        Panel(
            name="heatmap",
            title=N_("The chosen value: tokens × dimensions"),
            heading=N_("{value}: tokens × dimensions"),
            draw=lambda trace, s: captured_value_heatmap(trace, s.tap, s.head, s.query, s.dim, s.window),
            click_selects={"x": "dim", "y": "query"},
            verify=verify_captured("{tap}"),
            inspect=inspect_element,
            height=460,
        ),
        Panel(
            name="histogram",
            title=N_("How its values are spread"),
            draw=lambda trace, s: captured_value_histogram(trace, s.tap, s.head, s.query),
            no_difference_reason=BINS,
            inspect=lambda trace, s, point: histogram_share(
                trace, s.tap, s.head, get_item((None, s.query), point.coordinate("curve")), point.coordinate("item")
            ),
            verify=verify_captured("{tap}"),
            height=300,
        ),
    ),
)
