"""Pictures of how far apart two runs are."""

from collections.abc import Sequence

import numpy as np

from explorer.analysis.parting import head_distance, stream_distance, surprisal_difference
from explorer.analysis.residual import stages
from explorer.explain.notation import added, number, quoted
from explorer.language import _
from explorer.tracing.comparison import Comparison
from explorer.views import graph_objects as go
from explorer.views.stage_axes import layers_of, stage_axis
from explorer.views.style import SELECTED, figure, positions, token_axis
from explorer.views.two_runs.difference import Incomparable

MOST = 1.0  # times B's length at which colours end


def streams(comparison: Comparison, query: int) -> go.Figure:
    """How far apart the residual streams of every pair of tokens (column) are at every stage (row)."""
    trace = comparison.trace
    if trace.config.d_model != comparison.other.config.d_model:
        raise Incomparable(_("The streams of A and B have different widths: they cannot be compared number by number."))
    places = stages(trace)
    if not all(stage.tap in comparison.other for stage in places):
        raise Incomparable(_("A and B have different numbers of layers: their stages do not stand beside each other."))
    values = stream_distance(comparison)  # (S, T)
    largest = float(np.nanmax(values, initial=0.0))
    fig = figure(
        go.Heatmap(
            x=positions(trace.tokens),
            y=[stage.name for stage in places],
            z=values,
            zmin=0,
            zmax=min(largest, MOST) or MOST,
            autocolorscale=True,
            customdata=layers_of(places, len(trace)),
            hovertemplate=_("token %{x}, stream at %{y}<br>%{z:.3g} × the length of B’s apart<extra></extra>"),
            hoverongaps=False,
            colorbar={"title": {"text": _("× B’s length (larger ones alike)"), "side": "right"}},
        ),
        alt=_(
            "How far apart the residual streams of A and B are, {tokens} tokens at {stages} stages: at most {most} "
            "times the length of B’s.",
            tokens=len(trace),
            stages=len(places),
            most=number(largest),
        ),
        xaxis={**token_axis(trace.tokens, _("token of A"), most=24), "tickangle": -60},
        yaxis=stage_axis(places),
    )
    return fig.add_vrect(query - 0.5, query + 0.5, line={"color": SELECTED, "width": 2})


def heads(comparison: Comparison, layer: int, head: int) -> go.Figure:
    """How differently every head looks in A and B; row = layer."""
    shapes = {(run.config.num_layers, run.config.num_heads) for run in comparison.runs}
    if len(shapes) > 1:
        raise Incomparable(_("A and B have different numbers of layers or heads: look at them in turn."))
    values = head_distance(comparison)  # (L, H)
    most = np.unravel_index(np.nanargmax(values), values.shape)
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
            distance=number(values[most]),
            layer=most[0],
            head=most[1],
        ),
        xaxis={"title": {"text": _("head")}, "dtick": 1, "showgrid": False},
        yaxis={"title": {"text": _("layer")}, "dtick": 1, "showgrid": False, "autorange": "reversed"},
    )
    corners = {"x0": head - 0.5, "x1": head + 0.5, "y0": layer - 0.5, "y1": layer + 0.5}
    return fig.add_shape(type="rect", **corners, line={"color": SELECTED, "width": 3})


def text(comparison: Comparison, query: int) -> go.Figure:
    """Token by token, by how many bits it surprises A more than its partner surprises B."""
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
        most=added(values[worst]),
        token=quoted(tokens[worst]),
        position=worst,
    )
