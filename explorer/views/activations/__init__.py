"""Activations: any captured value, as it is."""

from typing import NamedTuple

import numpy as np

from explorer.analysis.activations import Statistics, histogram_of, matrix_at
from explorer.explain.analysed.activations import share
from explorer.explain.captured import derivation_of
from explorer.explain.derivation import Derivation
from explorer.explain.notation import number, quoted
from explorer.explain.point import Point, nth
from explorer.language import N_, _, look_up
from explorer.state.selection import Selection
from explorer.tracing.trace import Trace
from explorer.views import graph_objects as go
from explorer.views.checks import recomputed
from explorer.views.labels import whose
from explorer.views.style import RESIDUAL, SELECTED, around, figure, positions, token_axis
from explorer.views.two_runs.alone import BINS, alone
from explorer.views.view import Panel, View

MOST_COLUMNS, MOST_CELLS = 1024, 3 << 17


class Columns(NamedTuple):
    """What is said of the columns of a value, to be looked up: above them, of some of them, at each, and of all."""

    whole: str
    part: str
    hover: str
    alt: str

    def title(self, shown: range, width: int) -> str:
        if len(shown) == width:
            return look_up(self.whole)
        return look_up(self.part, first=shown.start, last=shown[-1], width=width)


KEYS = Columns(
    N_("key"),
    N_("key ({first} to {last} of {width})"),
    N_("position %{y}, key %{x}<br>%{z:.4g}<extra></extra>"),
    N_("{value}: {tokens} tokens by {width} keys, {least} to {most}."),
)
DIMENSIONS = Columns(
    N_("dimension"),
    N_("dimension ({first} to {last} of {width})"),
    N_("position %{y}, dimension %{x}<br>%{z:.4g}<extra></extra>"),
    N_("{value}: {tokens} tokens by {width} dimensions, {least} to {most}."),
)


def heatmap(
    trace: Trace, tap: str, head: int = 0, query: int | None = None, dim: int | None = None, window: int = 0
) -> go.Figure:
    """A captured value as tokens × dimensions; colours are centred at 0 where it takes both signs.

    Wider than 1,024 columns, or fewer of many tokens, those that hold `dim` are shown; at first `window` tokens around
    the query are in sight, all where 0.
    """
    values = matrix_at(trace, tap, head)  # (T, N)
    width = values.shape[1]
    most = MOST_COLUMNS if is_of_keys(tap) else min(MOST_COLUMNS, MOST_CELLS // len(values))
    start = (dim or 0) // most * most
    part = range(start, min(start + most, width))
    rows = around(query or 0, window, len(trace))
    largest = float(np.abs(values).max()) or 1.0
    signed = values.min() < 0
    if is_of_keys(tap):
        words, columns = KEYS, positions(trace.tokens)[start : part.stop]
        xaxis = {**token_axis(trace.tokens, words.title(part, width), shown=part), "tickangle": -60}
    else:
        words, columns = DIMENSIONS, np.array(part)
        xaxis = {"title": {"text": words.title(part, width)}, "showgrid": False}
    fig = figure(
        go.Heatmap(
            x=columns,
            y=positions(trace.tokens),
            z=values[:, start : part.stop],
            zmin=-largest if signed else 0,
            zmax=largest,
            autocolorscale=True,
            hovertemplate=look_up(words.hover),
        ),
        alt=look_up(
            words.alt,
            value=tap,
            tokens=len(values),
            width=width,
            least=number(values.min()),
            most=number(values.max()),
        ),
        xaxis=xaxis,
        yaxis={**token_axis(trace.tokens, _("token"), shown=rows), "range": [rows[-1] + 0.5, rows[0] - 0.5]},
    )
    if query is not None:
        fig.add_hrect(query - 0.5, query + 0.5, line={"color": SELECTED, "width": 1})
        if dim is not None and dim < width:
            corners = {"x0": dim - 0.5, "x1": dim + 0.5, "y0": query - 0.5, "y1": query + 0.5}
            fig.add_shape(type="rect", **corners, line={"color": SELECTED, "width": 3})
    return fig


def is_of_keys(tap: str) -> bool:
    """Whether its columns are tokens."""
    return tap.endswith((".scores", ".pattern"))


def histogram(trace: Trace, tap: str, head: int = 0, query: int = 0) -> go.Figure:
    """How often each size of value occurs: over all tokens, and at the chosen one; each sums to 1."""
    values = matrix_at(trace, tap, head).astype(np.float64)
    traces = []
    for name, some, color in ((_("all tokens"), values, RESIDUAL), (_("the chosen token"), values[query], SELECTED)):
        edges, shares = histogram_of(values, some)
        bars = {"x": (edges[:-1] + edges[1:]) / 2, "y": shares}
        shape = {"mode": "lines", "line": {"shape": "hvh", "color": color}, "fill": "tozeroy"}
        hover = _("about %{x:.3g}: %{y:.1%} of the values<extra></extra>")
        traces.append(go.Scatter(**bars, **shape, name=name, hovertemplate=hover))
    return figure(
        traces,
        alt=_("Histogram of {value}, over all tokens and at {token}.", value=tap, token=quoted(trace.tokens[query])),
        xaxis={"title": {"text": _("value")}},
        yaxis={"title": {"text": _("share of values")}, "tickformat": ".0%", "rangemode": "tozero"},
    )


def inspect_element(trace: Trace, selection: Selection, point: Point) -> Derivation:
    value = trace[selection.tap]
    head = (selection.head * len(value) // trace.config.num_heads,) if value.ndim == 3 else ()
    return derivation_of(trace, selection.tap, (*head, point.row, point.column))


def formula(trace: Trace, selection: Selection) -> str:
    values = matrix_at(trace, selection.tap, selection.head)
    token = values[selection.query]
    dim = min(selection.dim, len(token) - 1)
    value = trace[selection.tap]
    everything = Statistics.of(value)
    shape = " × ".join(map(str, value.shape))
    place = _("at {token} ({position})", token=quoted(trace.tokens[selection.query]), position=selection.query)
    if value.ndim == 3:
        place = f"{place}, {whose(trace.config, value, selection.head)}"
    return _(
        "{value}: {shape} numbers; mean {mean}, standard deviation {std}, RMS {rms}, from {least} to {most}, "
        "{zeros:.1%} zeros\n{place}: length ‖x‖₂ = √Σx² = {length}, element {dim} = {element}",
        value=selection.tap,
        shape=shape,
        mean=number(everything.mean),
        std=number(everything.std),
        rms=number(everything.rms),
        least=number(everything.smallest),
        most=number(everything.largest),
        zeros=everything.zeros,
        place=place,
        length=number(np.linalg.norm(token.astype(np.float64))),
        dim=dim,
        element=number(token[dim]),
    )


VIEW = View(
    name="activations",
    title=N_("Activations"),
    words=N_(
        "Inside the model every token is a list of numbers, and every step makes new lists from old ones. "
        "Choose any step (the value) to see its numbers, one row a token, and below how they are spread."
    ),
    formula=formula,
    needs=("blocks.*.resid_post",),
    otherwise=lambda config: _("Nothing was captured from this model."),
    controls=("tap", "head", "query", "window"),
    panels=(
        Panel(
            name="heatmap",
            title=N_("The chosen value: tokens × dimensions"),
            draw=lambda trace, s: heatmap(trace, s.tap, s.head, s.query, s.dim, s.window),
            selects={"x": "dim", "y": "query"},
            mark=recomputed("{tap}"),
            inspect=inspect_element,
            height=460,
        ),
        Panel(
            name="histogram",
            title=N_("How its values are spread"),
            draw=lambda trace, s: histogram(trace, s.tap, s.head, s.query),
            alone=alone(BINS),
            inspect=lambda trace, s, point: share(
                trace, s.tap, s.head, nth((None, s.query), point.of("curve")), point.of("item")
            ),
            mark=recomputed("{tap}"),
            height=300,
        ),
    ),
)
