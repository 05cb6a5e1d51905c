"""Figures of the distances between two runs."""

from collections.abc import Sequence

import numpy as np

from explorer.analysis.residual import residual_stages
from explorer.analysis.run_difference import head_distances, relative_stream_distance, surprisal_difference
from explorer.explain.notation import format_contribution, format_number, quote_token
from explorer.tracing.comparison import Comparison
from explorer.translations import _
from explorer.views import graph_objects as go
from explorer.views.stage_axes import click_layers, stage_axis
from explorer.views.style import SELECTED, figure, positions, token_axis
from explorer.views.two_runs.difference import NoDifferenceError

MAX_RELATIVE_DISTANCE = 1.0  # end of the colour scale, in multiples of B's norm


def residual_distance_map(comparison: Comparison, query: int) -> go.Figure:
    """Draw the distance of the residual streams of aligned tokens (column) at every stage (row).

    Raises:
        NoDifferenceError: the streams have different widths, or the models different numbers of layers.
    """
    trace = comparison.trace
    if trace.config.d_model != comparison.other.config.d_model:
        raise NoDifferenceError(
            _("The streams of A and B have different widths: they cannot be compared number by number.")
        )
    stage_list = residual_stages(trace)
    if not all(stage.tap in comparison.other for stage in stage_list):
        raise NoDifferenceError(
            _("A and B have different numbers of layers: their stages do not stand beside each other.")
        )
    values = relative_stream_distance(comparison)  # (S, T)
    largest = float(np.nanmax(values, initial=0.0))
    fig = figure(
        go.Heatmap(
            x=positions(trace.tokens),
            y=[stage.name for stage in stage_list],
            z=values,
            zmin=0,
            zmax=min(largest, MAX_RELATIVE_DISTANCE) or MAX_RELATIVE_DISTANCE,
            autocolorscale=True,
            customdata=click_layers(stage_list, len(trace)),
            hovertemplate=_("token %{x}, stream at %{y}<br>%{z:.3g} × the length of B’s apart<extra></extra>"),
            hoverongaps=False,
            colorbar={"title": {"text": _("× B’s length (larger ones alike)"), "side": "right"}},
        ),
        alt=_(
            "How far apart the residual streams of A and B are, {tokens} tokens at {stages} stages: at most {most} "
            "times the length of B’s.",
            tokens=len(trace),
            stages=len(stage_list),
            most=format_number(largest),
        ),
        xaxis={**token_axis(trace.tokens, _("token of A"), max_labels=24), "tickangle": -60},
        yaxis=stage_axis(stage_list),
    )
    return fig.add_vrect(query - 0.5, query + 0.5, line={"color": SELECTED, "width": 2})


def head_attention_difference_map(comparison: Comparison, layer: int, head: int) -> go.Figure:
    """Draw the distance of every head's attention in A and B; row = layer.

    Raises:
        NoDifferenceError: the models have different numbers of layers or heads.
    """
    shapes = {(run.config.num_layers, run.config.num_heads) for run in comparison.runs}
    if len(shapes) > 1:
        raise NoDifferenceError(_("A and B have different numbers of layers or heads. View them one at a time."))
    values = head_distances(comparison)  # (L, H)
    largest_index = np.unravel_index(np.nanargmax(values), values.shape)
    fig = figure(
        go.Heatmap(
            z=values,
            zmin=0,
            zmax=1,
            autocolorscale=True,
            text=[[f"{value:.2f}" for value in row] for row in values],
            texttemplate="%{text}" if values.shape[1] <= 12 else None,
            hovertemplate=_("layer %{y} head %{x}<br>distance %{z:.3g}<extra></extra>"),
            xgap=1,
            ygap=1,
            colorbar={"title": {"text": _("Jensen-Shannon distance"), "side": "right"}},
        ),
        alt=_(
            "How differently each of {count} heads looks in A and B, 0 for the same to 1: most, {distance}, layer "
            "{layer} head {head}.",
            count=values.size,
            distance=format_number(values[largest_index]),
            layer=largest_index[0],
            head=largest_index[1],
        ),
        xaxis={"title": {"text": _("head")}, "dtick": 1, "showgrid": False},
        yaxis={"title": {"text": _("layer")}, "dtick": 1, "showgrid": False, "autorange": "reversed"},
    )
    corners = {"x0": head - 0.5, "x1": head + 0.5, "y0": layer - 0.5, "y1": layer + 0.5}
    return fig.add_shape(type="rect", **corners, line={"color": SELECTED, "width": 3})


def surprisal_difference_bars(comparison: Comparison, query: int) -> go.Figure:
    """Draw each token's surprisal in A less that of its aligned token in B, in bits."""
    tokens, values = comparison.trace.tokens, surprisal_difference(comparison)
    fig = figure(
        go.Bar(
            x=positions(tokens),
            y=values,
            hovertemplate=_("%{x}<br>A − B %{y:+.2f} bits<extra></extra>"),
        ),
        alt=_alt_of_text(tokens, values),
        xaxis={**token_axis(tokens, _("token of A")), "tickangle": -60, "range": [-0.5, len(tokens) - 0.5]},
        yaxis={"title": {"text": _("surprisal, A − B, bits")}},
        bargap=0.15,
        hovermode="x",
    )
    column = {"x0": query - 0.5, "x1": query + 0.5, "y0": 0, "y1": 1, "yref": "paper"}
    return fig.add_shape(type="rect", **column, line={"color": SELECTED, "width": 1})


def _alt_of_text(tokens: Sequence[str], values: np.ndarray) -> str:
    if np.isnan(values).all():
        return _("No token after the first has a partner: no surprisal to compare.")
    worst = int(np.nanargmax(np.abs(values)))
    return _(
        "By how many bits each token surprises A more than its partner surprises B: most, {most}, {token} at "
        "{position}.",
        most=format_contribution(values[worst]),
        token=quote_token(tokens[worst]),
        position=worst,
    )
