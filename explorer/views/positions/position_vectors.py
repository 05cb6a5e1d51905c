"""The Positions view of models that add a vector for each position, sinusoidal or learned."""

from typing import Any

import numpy as np

from explorer.analysis.positions import (
    VECTOR_KINDS,
    context_position_embeddings,
    cosine_between_positions,
    cosines_by_distance,
    mean_cosine,
    position_cosines,
    position_norm,
    sinusoidal_cosine,
    token_and_position_norms,
)
from explorer.errors import PointNotFoundError
from explorer.explain.captured import derive
from explorer.explain.captured.formulas import first_token_position
from explorer.explain.derivation import ClickedPoint, Derivation, get_item
from explorer.explain.notation import format_number, quote_token
from explorer.state.selection import Selection
from explorer.tracing.trace import Trace
from explorer.translations import N_, _, translate
from explorer.views import graph_objects as go
from explorer.views.figure_template import FigureTemplate, each, extend, text, value
from explorer.views.shared_plots import POSITION_VECTORS_FIGURE, position_vector_map
from explorer.views.style import (
    EMBEDDING,
    RESIDUAL,
    SELECTED,
    cell_frame,
    column_band,
    column_line,
    position_labels,
    token_axis,
)
from explorer.views.verification import inspect_captured, verify_captured, verify_derived
from explorer.views.view import Panel

FAINT = "rgba(0, 158, 115, 0.4)"  # EMBEDDING


def position_cosine_map(trace: Trace, query: int, key: int) -> go.Figure:
    """Draw the cosine of the position vectors of any two positions; the chosen pair framed."""
    values, labels = position_cosines(trace), position_labels(trace.tokens)
    return ALIKE_FIGURE.draw(
        labels=labels,
        cosines=values,
        positions=len(values),
        cosine=format_number(values[query, key]),
        query=query,
        key=key,
        keys=token_axis(trace.tokens, max_labels=32),
        queries=token_axis(trace.tokens, max_labels=32),
        frame=cell_frame(query, key),
    )


ALIKE_FIGURE = FigureTemplate(
    alt=text(N_("Cosines between the vectors of {positions} positions: {cosine} between those of {query} and {key}.")),
    traces=[
        go.Heatmap(
            x=value("labels"),
            y=value("labels"),
            z=value("cosines"),
            zmin=-1,
            zmax=1,
            hovertemplate=text(N_("query %{y} and key %{x}<br>cosine %{z:.3f}<extra></extra>")),
            colorbar={"title": {"text": text(N_("cosine")), "side": "right"}},
        )
    ],
    layout={
        "xaxis": extend("keys", title={"text": text(N_("key’s position"))}),
        "yaxis": extend("queries", title={"text": text(N_("query’s position"))}, autorange="reversed"),
        "shapes": [value("frame")],
    },
)


def cosine_by_distance(trace: Trace, query: int, key: int) -> go.Figure:
    """Draw the cosines of position vectors by distance: the mean, and the band of all pairs.

    For sinusoidal vectors the cosine depends on the distance alone.
    """
    cosine_range, config = cosines_by_distance(trace), trace.config
    ranges = zip(cosine_range.minimum, cosine_range.maximum, strict=True)
    query_distance, far = query - key, np.arange(config.context_length)
    return DISTANCE_FIGURE.draw(
        distances=np.arange(len(trace)),
        least=cosine_range.minimum,
        most=cosine_range.maximum,
        mean=cosine_range.mean,
        hover=[
            _(
                "from {least} to {most} over {pairs} pairs",
                least=format_number(minimum),
                most=format_number(maximum),
                pairs=len(trace) - distance,
            )
            for distance, (minimum, maximum) in enumerate(ranges)
        ],
        waves=[{"far": far, "cosines": sinusoidal_cosine(far, config.d_model)}] * (config.position == "sinusoidal"),
        cosine=format_number(cosine_range.mean[query_distance]),
        distance=query_distance,
        spread=format_number((cosine_range.maximum - cosine_range.minimum).max()),
        chosen=column_line(query_distance),
    )


EDGE = go.Scatter(x=value("distances"), mode="lines", line={"width": 0})
HIDDEN = {"hoverinfo": "skip", "showlegend": False}
DISTANCE_FIGURE = FigureTemplate(
    alt=text(
        N_(
            "Cosines by distance: {cosine} at the {distance} positions between the chosen two; they differ by at most "
            "{most} between pairs as far apart."
        ),
        most="spread",
    ),
    traces=[
        {**EDGE, "y": value("least"), **HIDDEN},
        {**EDGE, "y": value("most"), "fill": "tonexty", "fillcolor": FAINT, **HIDDEN},
        go.Scatter(
            x=value("distances"),
            y=value("mean"),
            mode="lines+markers",
            line={"color": EMBEDDING},
            name=text(N_("mean over this run (band: all pairs)")),
            text=value("hover"),
            hovertemplate=text(N_("distance %{x}<br>mean cosine %{y:.3f}, %{text}<extra></extra>")),
            showlegend=True,
        ),
        each(
            "waves",
            go.Scatter(
                x=value("far"),
                y=value("cosines"),
                name=text(N_("2/D · Σ cos(distance · ω)")),
                mode="lines",
                line={"color": RESIDUAL, "width": 1, "dash": "dot"},
                hoverinfo="skip",
                showlegend=True,
            ),
        ),
    ],
    layout={
        "xaxis": {"title": {"text": text(N_("distance in tokens"))}, "showgrid": False},
        "yaxis": {"title": {"text": text(N_("cosine"))}},
        "shapes": [value("chosen")],
    },
)


def token_and_position_norm_bars(trace: Trace, query: int) -> go.Figure:
    """Draw the norms of each token's own vector, of its position's vector, and of their sum."""
    norms, labels = token_and_position_norms(trace), position_labels(trace.tokens)
    return SHARES_FIGURE.draw(
        labels=labels,
        own=norms[0],
        added=norms[1],
        total=norms[2],
        token=quote_token(trace.tokens[query]),
        own_length=format_number(norms[0, query]),
        added_length=format_number(norms[1, query]),
        total_length=format_number(norms[2, query]),
        tokens=token_axis(trace.tokens, max_labels=32),
        frame=column_band(query),
    )


def length_bars(name: str, lengths: str, color: str, hover: str) -> dict[str, Any]:
    """Return the bars of one kind of vector, with a hole for their lengths."""
    bars = go.Bar(x=value("labels"), y=value(lengths), name=text(name), marker={"color": color})
    return {**bars, "hovertemplate": text(hover)}


SHARES_FIGURE = FigureTemplate(
    alt=text(
        N_("Lengths at {token}: {own} of the token’s own vector, {position} of its position’s, {sum} of their sum."),
        own="own_length",
        position="added_length",
        sum="total_length",
    ),
    traces=[
        length_bars(
            N_("the token’s own vector"),
            "own",
            EMBEDDING,
            N_("token %{x}<br>length of the token’s own vector %{y:.4g}<extra></extra>"),
        ),
        length_bars(
            N_("the position’s"), "added", FAINT, N_("token %{x}<br>length of the position’s %{y:.4g}<extra></extra>")
        ),
        length_bars(
            N_("their sum"), "total", RESIDUAL, N_("token %{x}<br>length of their sum %{y:.4g}<extra></extra>")
        ),
    ],
    layout={
        "xaxis": extend("tokens", title={"text": text(N_("token"))}),
        "yaxis": {"title": {"text": text(N_("length ‖x‖₂"))}, "rangemode": "tozero"},
        "barmode": "group",
        "hovermode": "x",  # a short bar is hard to hit
        "shapes": [value("frame")],
    },
)


INITIAL_POSITIONS = 48  # at first, of a short run; the others can be zoomed out to


def position_vector_curves(trace: Trace, query: int, dim: int = 0) -> go.Figure:
    """Draw some dimensions along the positions, one below the other: lines for the model, dots for this run."""
    table, run = context_position_embeddings(trace), trace["position_embed"]
    start, dimensions = first_token_position(trace), sample_dimensions(trace, dim)
    lines, axes = [], {}
    for i, dimension in enumerate(dimensions):
        color, axis = SELECTED if i == 0 else EMBEDDING, f"y{i + 1}" if i else "y"
        lines.append(
            {
                "wave": table[:, dimension],
                "wave_line": {"color": color, "width": 1.2},
                "axis": axis,
                "dots": run[:, dimension],
                "marker": {"color": color, "size": 6},
                "hover": _(
                    "token %{{hovertext}}, dimension {dimension}<br>%{{y:.4g}}<extra></extra>", dimension=dimension
                ),
            }
        )
        top, share = 1 - i / len(dimensions), 1 / len(dimensions)
        title = {"text": _("dim {dimension}", dimension=dimension), "font": {"size": 11}}
        axes[f"yaxis{i + 1}" if i else "yaxis"] = {"domain": [top - 0.85 * share, top], "nticks": 3, "title": title}
    return CURVES_FIGURE.draw(
        lines=lines,
        context=np.arange(len(table)),
        positions=start + np.arange(len(run)),
        indices=np.arange(len(run)),
        labels=position_labels(trace.tokens),
        alt=translate(
            CURVES[trace.config.position],
            dimensions=len(dimensions),
            positions=len(table),
            dimension=dimensions[0],
            value=format_number(run[query, dimensions[0]]),
            token=quote_token(trace.tokens[query]),
        ),
        axes=axes,
        anchor=f"y{len(dimensions)}" if len(dimensions) > 1 else "y",
        range=[-1, min(len(table), max(INITIAL_POSITIONS, start + 2 * len(run)))],
        chosen={**column_line(start + query), "yref": "paper"},
    )


CURVES_FIGURE = FigureTemplate(
    alt=value("alt"),
    traces=[
        each(
            "lines",
            go.Scatter(
                x=value("context"),
                y=value("wave"),
                line=value("wave_line"),
                yaxis=value("axis"),
                mode="lines",
                hoverinfo="skip",
            ),
            go.Scatter(
                x=value("positions"),
                y=value("dots"),
                yaxis=value("axis"),
                mode="markers",
                marker=value("marker"),
                customdata=value("indices"),
                hovertext=value("labels"),
                hovertemplate=value("hover"),
            ),
        )
    ],
    layout=extend(
        "axes",
        xaxis={
            "title": {"text": text(N_("position (dots: this run)"))},
            "showgrid": False,
            "anchor": value("anchor"),
            "range": value("range"),
        },
        margin={"t": 24},  # below the heading
        showlegend=False,
        shapes=[value("chosen")],
    ),
)


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


def sample_dimensions(trace: Trace, dim: int) -> list[int]:
    """Return the chosen dimension, at most the last, and four others from the first to the middle.

    Sinusoidal vectors are slower in later dimensions.
    """
    d = trace.config.d_model
    return list(dict.fromkeys([min(dim, d - 1), 0, d // 8, d // 4, d // 2]))


def describe_position_vectors(trace: Trace, selection: Selection) -> str:
    """Describe the added vectors, their effect on the query, and the cosine of the two chosen positions."""
    config, query, key = trace.config, selection.query, selection.key
    addition_text = translate(ADDITIONS[config.position], positions=config.context_length, width=config.d_model)
    token, position, total = token_and_position_norms(trace)[:, query]
    cosine_value, distance, start = position_cosines(trace)[query, key], query - key, first_token_position(trace)
    sum_text = _(
        "{token} ({position}): ‖token + position‖ = {total}, of lengths {own} and {added}",
        token=quote_token(trace.tokens[query]),
        position=start + query,
        total=format_number(total),
        own=format_number(token),
        added=format_number(position),
    )
    cosine_text = _(
        "cosine of positions {query} and {key} = p·p′ / (‖p‖ ‖p′‖) = {cosine}",
        query=start + query,
        key=start + key,
        cosine=format_number(cosine_value),
    )
    if config.position == "sinusoidal":
        cosine_text = _(
            "{likeness}; of waves it depends on the distance alone: 2/D · Σ cos({distance} · ω) = {cosine}",
            likeness=cosine_text,
            distance=distance,
            cosine=format_number(sinusoidal_cosine(np.array([distance]), config.d_model)[0]),
        )
    return "\n".join((addition_text, sum_text, cosine_text))


ADDITIONS = {
    "sinusoidal": N_("position_embed[m, 2i] = sin(m / 10000^(2i/D)), [m, 2i + 1] = its cosine; D = {width}"),
    "learned": N_("position_embed[m] = row m of {positions} × {width} learned numbers"),
}


def inspect_position_vector(trace: Trace, selection: Selection, point: ClickedPoint) -> Derivation:
    """Derive the clicked element of a position's vector."""
    line, is_dot = divmod(point.coordinate("curve"), 2)
    if not is_dot:
        raise PointNotFoundError(_("only the dots are of this run"))
    dimension = get_item(sample_dimensions(trace, selection.dim), line)
    return derive(trace, "position_embed", (point.coordinate("item"), dimension))


POSITION_TAPS = ("position_embed",)
PANELS = (
    Panel(
        name="vectors",
        template=POSITION_VECTORS_FIGURE,
        title=N_("The vector that is added for each position"),
        draw=lambda trace, s: position_vector_map(trace, s.query, s.dim),
        required_taps=POSITION_TAPS,
        click_selects={"x": "dim", "y": "query"},
        verify=verify_captured("position_embed"),
        inspect=inspect_captured("position_embed", "y", "x"),
        height=420,
        width="half",
    ),
    Panel(
        name="curves",
        template=CURVES_FIGURE,
        title=N_("Some dimensions of these vectors, by position"),
        draw=lambda trace, s: position_vector_curves(trace, s.query, s.dim),
        required_taps=POSITION_TAPS,
        click_selects={"customdata": "query"},
        verify=verify_captured("position_embed"),
        inspect=inspect_position_vector,
        height=420,
        width="half",
    ),
    Panel(
        name="alike",
        template=ALIKE_FIGURE,
        title=N_("How alike the vectors of two positions are"),
        draw=lambda trace, s: position_cosine_map(trace, s.query, s.key),
        required_taps=POSITION_TAPS,
        click_selects={"x": "key", "y": "query"},
        verify=verify_derived("position_embed"),
        inspect=lambda trace, s, point: cosine_between_positions(trace, point.row, point.column),
        height=420,
        width="half",
    ),
    Panel(
        name="by_distance",
        template=DISTANCE_FIGURE,
        title=N_("How alike they are, by distance"),
        draw=lambda trace, s: cosine_by_distance(trace, s.query, s.key),
        required_taps=POSITION_TAPS,
        verify=verify_derived("position_embed"),
        inspect=lambda trace, s, point: mean_cosine(trace, point.column),
        height=420,
        width="half",
    ),
    Panel(
        name="shares",
        template=SHARES_FIGURE,
        title=N_("What the sum is made of: token and position"),
        draw=lambda trace, s: token_and_position_norm_bars(trace, s.query),
        required_taps=POSITION_TAPS,
        click_selects={"x": "query"},
        verify=verify_derived("position_embed", "embed"),
        inspect=lambda trace, s, point: position_norm(
            trace, get_item(VECTOR_KINDS, point.coordinate("curve")), point.column
        ),
        height=320,
    ),
)
