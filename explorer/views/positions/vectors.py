"""The Positions view of models that add a vector for each position: waves, or a learned table."""

import numpy as np

from explorer.analysis.positions import PARTS, context_vectors, cosine_of_waves, cosines, lengths
from explorer.explain.analysed.positions import cosine, length, mean_cosine
from explorer.explain.captured import derivation_of
from explorer.explain.captured.edits import first_position
from explorer.explain.derivation import Derivation
from explorer.explain.notation import number, quoted
from explorer.explain.point import Point, nth
from explorer.language import N_, _, look_up
from explorer.state.errors import NoSuchPoint
from explorer.state.selection import Selection
from explorer.tracing.trace import Trace
from explorer.views import graph_objects as go
from explorer.views.checks import cell, recomputed, worked_out
from explorer.views.position_table import position_table
from explorer.views.positions.likeness import alike, by_distances
from explorer.views.positions.vector_shares import shares
from explorer.views.style import EMBEDDING, SELECTED, figure, positions
from explorer.views.view import Panel

SHOWN_POSITIONS = 48  # at first, of a short run; the others can be zoomed out to


def curves(trace: Trace, query: int, dim: int = 0) -> go.Figure:
    """Some dimensions along the positions, one below the other: lines of what the model has, dots of this run."""
    table, run = context_vectors(trace), trace["position_embed"]
    start, dimensions = first_position(trace), shown_dimensions(trace, dim)
    lines, axes = [], {}
    for i, dimension in enumerate(dimensions):
        color, axis = SELECTED if i == 0 else EMBEDDING, f"y{i + 1}" if i else "y"
        line = {"x": np.arange(len(table)), "y": table[:, dimension], "line": {"color": color, "width": 1.2}}
        lines.append(go.Scatter(**line, yaxis=axis, mode="lines", hoverinfo="skip"))
        lines.append(
            go.Scatter(
                x=start + np.arange(len(run)),
                y=run[:, dimension],
                yaxis=axis,
                mode="markers",
                marker={"color": color, "size": 6},
                customdata=np.arange(len(run)),
                hovertext=positions(trace.tokens),
                hovertemplate=_(
                    "token %{{hovertext}}, dimension {dimension}<br>%{{y:.4g}}<extra></extra>", dimension=dimension
                ),
            )
        )
        top, share = 1 - i / len(dimensions), 1 / len(dimensions)
        title = {"text": _("dim {dimension}", dimension=dimension), "font": {"size": 11}}
        axes[f"yaxis{i + 1}" if i else "yaxis"] = {"domain": [top - 0.85 * share, top], "nticks": 3, "title": title}
    fig = figure(
        lines,
        alt=look_up(
            CURVES[trace.config.position],
            dimensions=len(dimensions),
            positions=len(table),
            dimension=dimensions[0],
            value=number(run[query, dimensions[0]]),
            token=quoted(trace.tokens[query]),
        ),
        xaxis={
            "title": {"text": _("position (dots: this run)")},
            "showgrid": False,
            "anchor": f"y{len(dimensions)}" if len(dimensions) > 1 else "y",
            "range": [-1, min(len(table), max(SHOWN_POSITIONS, start + 2 * len(run)))],
        },
        **axes,
        margin={"t": 8},
        showlegend=False,
    )
    here = {"x0": start + query, "x1": start + query, "y0": 0, "y1": 1, "yref": "paper"}
    return fig.add_shape(type="line", **here, line={"color": SELECTED, "width": 1})


CURVES = {
    "sinusoidal": N_(
        "{dimensions} dimensions of what is added at {positions} positions, waves: dimension {dimension} is {value} at "
        "{token}."
    ),
    "learned": N_(
        "{dimensions} dimensions of what is added at {positions} positions, learned numbers: dimension {dimension} is "
        "{value} at {token}."
    ),
}


def shown_dimensions(trace: Trace, dim: int) -> list[int]:
    """The chosen dimension, or the last where a wider value's was chosen, and four from the first to the middle: of
    waves ever slower ones."""
    d = trace.config.d_model
    return list(dict.fromkeys([min(dim, d - 1), 0, d // 8, d // 4, d // 2]))


def formula(trace: Trace, selection: Selection) -> str:
    """What is added, what it makes of the chosen token, and how alike the chosen two positions are."""
    config, query, key = trace.config, selection.query, selection.key
    added = look_up(ADDITIONS[config.position], positions=config.context_length, width=config.d_model)
    token, position, total = lengths(trace)[:, query]
    found, distance, start = cosines(trace)[query, key], query - key, first_position(trace)
    summed = _(
        "{token} ({position}): ‖token + position‖ = {total}, of lengths {own} and {added}",
        token=quoted(trace.tokens[query]),
        position=start + query,
        total=number(total),
        own=number(token),
        added=number(position),
    )
    likeness = _(
        "cosine of positions {query} and {key} = p·p′ / (‖p‖ ‖p′‖) = {cosine}",
        query=start + query,
        key=start + key,
        cosine=number(found),
    )
    if config.position == "sinusoidal":
        likeness = _(
            "{likeness}; of waves it depends on the distance alone: 2/D · Σ cos({distance} · ω) = {cosine}",
            likeness=likeness,
            distance=distance,
            cosine=number(cosine_of_waves(np.array([distance]), config.d_model)[0]),
        )
    return "\n".join((added, summed, likeness))


ADDITIONS = {
    "sinusoidal": N_("position_embed[m, 2i] = sin(m / 10000^(2i/D)), [m, 2i + 1] = its cosine; D = {width}"),
    "learned": N_("position_embed[m] = row m of {positions} × {width} learned numbers"),
}


def inspect_curve(trace: Trace, selection: Selection, point: Point) -> Derivation:
    line, is_dot = divmod(point.of("curve"), 2)
    if not is_dot:
        raise NoSuchPoint(_("only the dots are of this run"))
    dimension = nth(shown_dimensions(trace, selection.dim), line)
    return derivation_of(trace, "position_embed", (point.of("item"), dimension))


ADDED = ("position_embed",)
PANELS = (
    Panel(
        name="vectors",
        title=N_("The vector that is added for each position"),
        draw=lambda trace, s: position_table(trace, s.query, s.dim),
        needs=ADDED,
        selects={"x": "dim", "y": "query"},
        mark=recomputed("position_embed"),
        inspect=cell("position_embed", "y", "x"),
        height=420,
        width="half",
    ),
    Panel(
        name="curves",
        title=N_("A few of its dimensions along the positions; choose one in the picture before"),
        draw=lambda trace, s: curves(trace, s.query, s.dim),
        needs=ADDED,
        selects={"customdata": "query"},
        mark=recomputed("position_embed"),
        inspect=inspect_curve,
        height=420,
        width="half",
    ),
    Panel(
        name="alike",
        title=N_("How alike the vectors of two positions are"),
        draw=lambda trace, s: alike(trace, s.query, s.key),
        needs=ADDED,
        selects={"x": "key", "y": "query"},
        mark=worked_out("position_embed"),
        inspect=lambda trace, s, point: cosine(trace, point.row, point.column),
        height=420,
        width="half",
    ),
    Panel(
        name="by_distance",
        title=N_("The same by how far apart the two are"),
        draw=lambda trace, s: by_distances(trace, s.query, s.key),
        needs=ADDED,
        mark=worked_out("position_embed"),
        inspect=lambda trace, s, point: mean_cosine(trace, point.column),
        height=420,
        width="half",
    ),
    Panel(
        name="shares",
        title=N_("What the sum is made of: how long the token’s own vector is, the position’s, and their sum"),
        draw=lambda trace, s: shares(trace, s.query),
        needs=ADDED,
        selects={"x": "query"},
        mark=worked_out("position_embed", "embed"),
        inspect=lambda trace, s, point: length(trace, nth(PARTS, point.of("curve")), point.column),
        height=320,
    ),
)
