"""The Positions view of models that add a vector for each position: waves, or a learned table."""

import numpy as np
import plotly.graph_objects as go

from explorer.analysis.positions import PARTS, by_distance, context_vectors, cosine_of_waves, cosines, lengths
from explorer.analysis.recompute.changes import first_position
from explorer.inspection import Inspection, Point, inspect
from explorer.inspection.inspection import nth
from explorer.inspection.positions import cosine, length, mean_cosine
from explorer.selection import Selection
from explorer.style import (
    EMBEDDING,
    RESIDUAL,
    SELECTED,
    figure,
    number,
    positions,
    quoted,
    token_axis,
)
from explorer.trace import Trace
from explorer.views.embedding import position_table
from explorer.views.evidence import cell, recomputed, worked_out
from explorer.views.view import Panel

FAINT = "rgba(0, 158, 115, 0.4)"  # EMBEDDING
SHOWN_POSITIONS = 48  # at first, of a short run; the others can be zoomed out to


def curves(trace: Trace, query: int, dim: int = 0) -> go.Figure:
    """Some dimensions along the positions, one below the other: lines of what the model has, dots of this run."""
    table, run = context_vectors(trace), trace["position_embed"]
    start, dimensions = first_position(trace), shown_dimensions(trace, dim)
    lines, axes = [], {}
    for i, dimension in enumerate(dimensions):
        color, axis = SELECTED if dimension == dim else EMBEDDING, f"y{i + 1}" if i else "y"
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
                hovertemplate=f"token %{{hovertext}}, dimension {dimension}<br>%{{y:.4g}}<extra></extra>",
            )
        )
        top, share = 1 - i / len(dimensions), 1 / len(dimensions)
        title = {"text": f"dim {dimension}", "font": {"size": 11}}
        axes[f"yaxis{i + 1}" if i else "yaxis"] = {"domain": [top - 0.85 * share, top], "nticks": 3, "title": title}
    kind = {"sinusoidal": "waves", "learned": "learned numbers"}[trace.config.position]
    fig = figure(
        lines,
        alt=(
            f"{len(dimensions)} dimensions of what is added at {len(table)} positions, {kind}: dimension {dim} is "
            f"{number(run[query, dim])} at {quoted(trace.tokens[query])}."
        ),
        xaxis={
            "title": {"text": "position (dots: this run)"},
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


def shown_dimensions(trace: Trace, dim: int) -> list[int]:
    """The chosen dimension, and four from the first to the middle: of waves ever slower ones."""
    d = trace.config.d_model
    return list(dict.fromkeys([dim, 0, d // 8, d // 4, d // 2]))


def shares(trace: Trace, query: int) -> go.Figure:
    """How long each token's own vector is, the position's, and their sum."""
    found, places = lengths(trace), positions(trace.tokens)
    fig = figure(
        [
            go.Bar(
                x=places,
                y=values,
                name=NAMES[part],
                marker={"color": color},
                hovertemplate=f"token %{{x}}<br>length of {NAMES[part]} %{{y:.4g}}<extra></extra>",
            )
            for part, values, color in zip(PARTS, found, (EMBEDDING, FAINT, RESIDUAL), strict=True)
        ],
        alt=(
            f"Lengths at {quoted(trace.tokens[query])}: {number(found[0, query])} of the token’s own vector, "
            f"{number(found[1, query])} of its position’s, {number(found[2, query])} of their sum."
        ),
        xaxis={**token_axis(trace.tokens, "token", most=24), "tickangle": -60},
        yaxis={"title": {"text": "length ‖x‖₂"}, "rangemode": "tozero"},
        barmode="group",
        bargap=0.3,
        hovermode="x",  # a short bar is hard to hit
    )
    fig.add_vrect(query - 0.5, query + 0.5, line={"color": SELECTED, "width": 1})
    return fig


NAMES = {"token": "the token’s own vector", "position": "the position’s", "sum": "their sum"}


def alike(trace: Trace, query: int, key: int) -> go.Figure:
    """The cosine of what is added at any two positions; a frame around the chosen pair."""
    found, places = cosines(trace), positions(trace.tokens)
    fig = figure(
        go.Heatmap(
            x=places,
            y=places,
            z=found,
            zmin=-1,
            zmax=1,
            autocolorscale=True,
            hovertemplate="query %{y} and key %{x}<br>cosine %{z:.3f}<extra></extra>",
            colorbar={"title": {"text": "cosine", "side": "right"}},
        ),
        alt=(
            f"Cosines between the vectors of {len(found)} positions: {number(found[query, key])} between those of "
            f"{query} and {key}."
        ),
        xaxis={**token_axis(trace.tokens, "key’s position", most=24), "tickangle": -60},
        yaxis={**token_axis(trace.tokens, "query’s position", most=24), "autorange": "reversed"},
    )
    corners = {"x0": key - 0.5, "x1": key + 0.5, "y0": query - 0.5, "y1": query + 0.5}
    fig.add_shape(type="rect", **corners, line={"color": SELECTED, "width": 3})
    return fig


def by_distances(trace: Trace, query: int, key: int) -> go.Figure:
    """The same cosines by distance: of waves one number a distance, wherever the two stand."""
    found, config = by_distance(trace), trace.config
    across = np.arange(len(trace))
    hover = {"hoverinfo": "skip", "showlegend": False}
    edge = {"mode": "lines", "line": {"width": 0}, **hover}
    traces = [
        go.Scatter(x=across, y=found.least, **edge),
        go.Scatter(x=across, y=found.most, fill="tonexty", fillcolor=FAINT, **edge),
        go.Scatter(
            x=across,
            y=found.mean,
            mode="lines+markers",
            line={"color": EMBEDDING},
            name="mean over this run (band: all pairs)",
            text=[
                f"from {number(least)} to {number(most)} over {len(trace) - distance} pairs"
                for distance, (least, most) in enumerate(zip(found.least, found.most, strict=True))
            ],
            hovertemplate="distance %{x}<br>mean cosine %{y:.3f}, %{text}<extra></extra>",
            showlegend=True,
        ),
    ]
    here = query - key
    if config.position == "sinusoidal":
        far = np.arange(config.context_length)
        line = {"color": RESIDUAL, "width": 1, "dash": "dot"}
        formula = {"x": far, "y": cosine_of_waves(far, config.d_model), "name": "2/D · Σ cos(distance · ω)"}
        traces.append(go.Scatter(**formula, mode="lines", line=line, hoverinfo="skip", showlegend=True))
    fig = figure(
        traces,
        alt=(
            f"Cosines by distance: {number(found.mean[here])} at the {here} positions between the chosen two; "
            f"they differ by at most {number((found.most - found.least).max())} between pairs as far apart."
        ),
        xaxis={"title": {"text": "distance in tokens"}, "showgrid": False},
        yaxis={"title": {"text": "cosine"}},
    )
    fig.add_vline(here, line={"color": SELECTED, "width": 1})
    return fig


def formula(trace: Trace, selection: Selection) -> str:
    """What is added, what it makes of the chosen token, and how alike the chosen two positions are."""
    config, query, key = trace.config, selection.query, selection.key
    added = {
        "sinusoidal": f"position_embed[m, 2i] = sin(m / 10000^(2i/D)), [m, 2i + 1] = its cosine; D = {config.d_model}",
        "learned": f"position_embed[m] = row m of {config.context_length} × {config.d_model} learned numbers",
    }[config.position]
    token, position, total = lengths(trace)[:, query]
    found, distance = cosines(trace)[query, key], query - key
    alone = ""
    if config.position == "sinusoidal":
        by_waves = cosine_of_waves(np.array([distance]), config.d_model)[0]
        alone = f"; of waves it depends on the distance alone: 2/D · Σ cos({distance} · ω) = {number(by_waves)}"
    return (
        f"{added}\n{quoted(trace.tokens[query])} ({query}): ‖token + position‖ = {number(total)}, of lengths "
        f"{number(token)} and {number(position)}\n"
        f"cosine of positions {query} and {key} = p·p′ / (‖p‖ ‖p′‖) = {number(found)}{alone}"
    )


def inspect_curve(trace: Trace, selection: Selection, point: Point) -> Inspection | None:
    dimensions = shown_dimensions(trace, selection.dim)
    line, is_dot = divmod(point.of("curve"), 2)
    return inspect(trace, "position_embed", (point.of("item"), nth(dimensions, line))) if is_dot else None


ADDED = ("position_embed",)
PANELS = (
    Panel(
        name="vectors",
        title="The vector that is added for each position",
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
        title="A few of its dimensions along the positions; choose one in the picture before",
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
        title="How alike the vectors of two positions are",
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
        title="The same by how far apart the two are",
        draw=lambda trace, s: by_distances(trace, s.query, s.key),
        needs=ADDED,
        mark=worked_out("position_embed"),
        inspect=lambda trace, s, point: mean_cosine(trace, point.column),
        height=420,
        width="half",
    ),
    Panel(
        name="shares",
        title="What the sum is made of: how long the token’s own vector is, the position’s, and their sum",
        draw=lambda trace, s: shares(trace, s.query),
        needs=ADDED,
        selects={"x": "query"},
        mark=worked_out("position_embed", "embed"),
        inspect=lambda trace, s, point: length(trace, nth(PARTS, point.of("curve")), point.column),
        height=320,
    ),
)
