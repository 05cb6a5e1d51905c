"""Attention: where each head looks."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from explorer.analysis.attention import PATTERNS, attention_cell, shown_pattern
from explorer.explain.analysed.attention import shown_weight, stage
from explorer.explain.analysed.heads import head_score
from explorer.explain.analysed.scores import dimension
from explorer.explain.captured import derivation_of
from explorer.explain.derivation import Derivation
from explorer.explain.notation import number, quoted
from explorer.explain.point import Point
from explorer.language import N_, _, look_up
from explorer.state.errors import NoSuchPoint
from explorer.state.selection import Selection
from explorer.tracing.trace import Trace
from explorer.views.attention.detail import dimensions, head_map, ladder
from explorer.views.attention.line_plot import lines
from explorer.views.checks import Mark, cell, recomputed, worked_out
from explorer.views.labels import compared, shared_head
from explorer.views.style import SELECTED, around, figure, positions, token_axis
from explorer.views.view import Panel, SmallMultiples, View


def all_heads(trace: Trace) -> SmallMultiples:
    """The patterns of every head of every layer."""
    values = trace.stack("blocks.*.attn.pattern")  # (L, H, T, T)
    layers, heads = values.shape[:2]
    alt = _("Attention patterns of {heads} heads in each of {layers} layers; choose one.", heads=heads, layers=layers)
    return SmallMultiples(values, alt)


def pattern(
    trace: Trace,
    layer: int,
    head: int,
    query: int | None = None,
    key: int | None = None,
    kind: str = "weight",
    window: int = 0,
    chosen: Sequence[tuple[int, int]] = (),
) -> go.Figure:
    """One of `PATTERNS`: row = query, column = key; a frame around the chosen cell. Weights have colours from 0 to 1,
    what is moved from 0 to its largest. At first `window` tokens around the cell are in sight, all where 0."""
    values = shown_pattern(trace, layer, head, kind, chosen)  # (T, T)
    places = positions(trace.tokens)
    queries, keys = (around(position or 0, window, len(trace)) for position in (query, key))
    measure = _("weight × length") if kind == "moved" else _("weight")
    if kind in ("layer_mean", "layer_max"):
        whose = _("layer {layer}", layer=layer)
    else:
        heads = (chosen if kind in ("chosen_mean", "chosen_max") else ()) or ((layer, head),)
        whose = ", ".join(_("layer {layer} head {head}", layer=i, head=j) for i, j in heads)
    fig = figure(
        go.Heatmap(
            x=places,
            y=places,
            z=np.where(np.tri(len(trace), dtype=bool), values, np.nan),
            zmin=0,
            zmax=float(values.max()) or 1.0 if kind == "moved" else 1,
            autocolorscale=True,
            hovertemplate=_("query %{{y}} → key %{{x}}<br>{measure} %{{z:.3f}}<extra></extra>", measure=measure),
            hoverongaps=False,
            xgap=0.5 if len(keys) <= 48 else 0,
            ygap=0.5 if len(keys) <= 48 else 0,
            colorbar={"title": {"text": measure, "side": "right"}},
        ),
        alt=_(
            "Attention pattern of {whose}, {tokens} queries by {tokens} keys: {kind}.",
            whose=whose,
            tokens=len(trace),
            kind=look_up(PATTERNS[kind]),
        ),
        xaxis={
            **token_axis(trace.tokens, _("key (looked at)"), most=24, shown=keys),
            "tickangle": -60,
            "range": [keys[0] - 0.5, keys[-1] + 0.5],
        },
        yaxis={
            **token_axis(trace.tokens, _("query (looks back)"), shown=queries),
            "range": [queries[-1] + 0.5, queries[0] - 0.5],
        },
    )
    if query is not None:
        fig.add_hrect(query - 0.5, query + 0.5, line={"color": SELECTED, "width": 1})
    if key is not None:
        fig.add_shape(
            type="rect",
            **{"x0": key - 0.5, "x1": key + 0.5, "y0": query - 0.5, "y1": query + 0.5},
            line={"color": SELECTED, "width": 3},
        )
    return fig


def row(trace: Trace, layer: int, head: int, query: int, key: int | None = None) -> go.Figure:
    """One query's weights as bars over the keys it may look at; they sum to 1."""
    weights = trace[f"blocks.{layer}.attn.pattern"][head, query, : query + 1]
    strongest = int(weights.argmax())
    tokens = trace.tokens[: query + 1]
    places = positions(tokens)
    hover = _("key %{hovertext}<br>weight %{y:.3f}<extra></extra>")
    bars = [go.Bar(x=places, y=weights, hovertext=places, hovertemplate=hover)]
    if key is not None:
        place = [places[key]]
        bars.append(go.Bar(x=place, y=[weights[key]], hovertext=place, hovertemplate=hover, marker={"color": SELECTED}))
    return figure(
        bars,
        alt=_(
            "Attention of {token} at position {position}: most, {weight}, to {key} at {strongest}.",
            token=quoted(trace.tokens[query]),
            position=query,
            weight=number(weights[strongest]),
            key=quoted(tokens[strongest]),
            strongest=strongest,
        ),
        xaxis={**token_axis(tokens, _("key")), "tickangle": -60},
        yaxis={"range": [0, 1], "title": {"text": _("weight")}},
        bargap=0.15,
        barmode="overlay",
        showlegend=False,
    )


def formula(trace: Trace, selection: Selection) -> str:
    layer, head, query, key = selection.layer, selection.head, selection.query, selection.key
    cell = attention_cell(trace, layer, head, query, key)
    d = trace.config.d_head
    whose = _("layer {layer} head {head}", layer=layer, head=head)
    if shared := shared_head(trace.config, head):
        whose = _("{whose} (k and v of {shared})", whose=whose, shared=shared)
    return _(
        "{whose}, query {query} ({query_position}) → key {key} ({key_position})\n"
        "score  = q·k / √d = {dot} / √{d} = {score}\n"
        "weight = e^(score − max) / Σ e^(scores − max) = {exp_score} / {exp_total} = {weight}   recomputed from "
        "{vectors}, off by {error}",
        whose=whose,
        query=quoted(trace.tokens[query]),
        query_position=query,
        key=quoted(trace.tokens[key]),
        key_position=key,
        dot=number(cell.dot),
        d=d,
        score=number(cell.score),
        exp_score=number(cell.exp_score),
        exp_total=number(cell.exp_total),
        weight=number(cell.weight),
        vectors=compared(trace.config),
        error=number(cell.error),
    )


PATTERN = "blocks.{layer}.attn.pattern"


def mark_of_pattern(trace: Trace, selection: Selection) -> Mark:
    if selection.pattern == "weight":
        return recomputed(PATTERN)(trace, selection)
    if selection.pattern in ("chosen_mean", "chosen_max"):
        return worked_out("blocks.*.attn.pattern")(trace, selection)
    return worked_out(PATTERN, *["blocks.{layer}.attn.v"] * (selection.pattern == "moved"))(trace, selection)


def mark_of_dimensions(trace: Trace, selection: Selection) -> Mark:
    turned = "_rot" * (trace.config.position == "rope")
    names = (f"blocks.{{layer}}.attn.{vector}{turned}" for vector in "qk")
    return worked_out(*names, "blocks.{layer}.attn.scores")(trace, selection)


def inspect_line(trace: Trace, selection: Selection, point: Point) -> Derivation | None:
    """A token at the left as the query of the chosen key, one at the right as the key of the chosen query."""
    query, key = (point.row, selection.key) if point.column == 0 else (selection.query, point.row)
    if point.column > 1 or max(query, key) >= len(trace):
        raise NoSuchPoint(_("there is no token {position}", position=max(query, key)))
    return (
        derivation_of(trace, PATTERN.format(layer=selection.layer), (selection.head, query, key))
        if key <= query
        else None
    )


VIEW = View(
    name="attention",
    title=N_("Attention"),
    words=N_(
        "Each head lets every token look back at the tokens before it and fetch something from them. "
        "Choose a small picture to see that head large, then a cell to see how much the token of that row (the "
        "query) takes from the token of that column (the key)."
    ),
    formula=formula,
    needs=("blocks.*.attn.pattern",),
    otherwise=lambda config: _("This model has no attention."),
    controls=("layer", "head", "query", "key", "pattern", "window", "head_score", "first_token"),
    panels=(
        Panel(
            name="heads",
            title=N_("All heads: rows are layers, columns are heads; shift-click chooses several"),
            draw=lambda trace, selection: all_heads(trace),
            kind="head_grid",
            once=True,
            mark=recomputed("blocks.*.attn.pattern"),
            inspect=cell(PATTERN, "head", "y", "x"),
            selects={"layer": "layer", "head": "head", "x": "key", "y": "query"},
            width="half",
        ),
        Panel(
            name="pattern",
            title=N_("The chosen head: who looks at whom"),
            draw=lambda trace, s: pattern(trace, s.layer, s.head, s.query, s.key, s.pattern, s.window, s.chosen_heads),
            selects={"x": "key", "y": "query"},
            mark=mark_of_pattern,
            inspect=lambda trace, s, point: shown_weight(
                trace, s.layer, s.head, point.row, point.column, s.pattern, s.chosen_heads
            ),
            height=500,
            width="half",
        ),
        Panel(
            name="row",
            title=N_("The chosen query: its weights, which sum to 1"),
            draw=lambda trace, s: row(trace, s.layer, s.head, s.query, s.key),
            selects={"x": "key"},
            mark=recomputed(PATTERN),
            inspect=cell(PATTERN, "head", "query", "x"),
            height=260,
        ),
        Panel(
            name="stages",
            title=N_("The chosen query's numbers, from products to what is fetched"),
            draw=lambda trace, s: ladder(trace, s.layer, s.head, s.query, s.key),
            selects={"x": "key"},
            mark=recomputed("blocks.{layer}.attn.scores", PATTERN, "blocks.{layer}.attn.v"),
            inspect=lambda trace, s, point: stage(trace, s.layer, s.head, s.query, point.column, point.row),
            height=320,
            min_width=900,
        ),
        Panel(
            name="dimensions",
            title=N_("The chosen cell's score, dimension by dimension"),
            draw=lambda trace, s: dimensions(trace, s.layer, s.head, s.query, s.key),
            inspect=lambda trace, s, point: dimension(trace, s.layer, s.head, s.query, s.key, point.of("item")),
            mark=mark_of_dimensions,
            height=260,
        ),
        Panel(
            name="scores",
            title=N_("What each head does: choose a score above"),
            draw=lambda trace, s: head_map(trace, s.head_score, s.first_token == "hidden", s.layer, s.head),
            selects={"x": "head", "y": "layer"},
            mark=worked_out("blocks.*.attn.pattern"),
            inspect=lambda trace, s, point: head_score(
                trace, s.head_score, s.first_token == "hidden", point.row, point.column
            ),
            height=370,
            width="half",
        ),
        Panel(
            name="lines",
            title=N_("The chosen head as lines: every query to the keys it looks at"),
            draw=lambda trace, s: lines(trace, s.layer, s.head, s.query, s.key),
            selects={"customdata": ("query", "key")},
            inspect=inspect_line,
            mark=recomputed(PATTERN),
            height=500,
            width="half",
        ),
    ),
)
