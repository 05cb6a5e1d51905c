"""Attention: where each head looks."""

from explorer.explain.analysed.attention import shown_weight, stage
from explorer.explain.analysed.heads import head_score
from explorer.explain.analysed.scores import dimension
from explorer.explain.captured import derivation_of
from explorer.explain.derivation import Derivation
from explorer.explain.point import Point
from explorer.language import N_, _
from explorer.state.errors import NoSuchPoint
from explorer.state.selection import Selection
from explorer.tracing.trace import Trace
from explorer.views.attention.detail import dimensions, head_map, ladder
from explorer.views.attention.formula import formula
from explorer.views.attention.line_plot import lines
from explorer.views.attention.patterns import all_heads, pattern, row
from explorer.views.checks import Mark, cell, recomputed, worked_out
from explorer.views.two_runs.alone import LINES, ROWS, alone
from explorer.views.view import Panel, View
from explorer.views.what_ifs import DROP, HEAD, MASK, MEAN, TAKEN_HEAD, TAKEN_MEAN, TAKEN_PATTERN

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
    what_ifs=(HEAD, MEAN, TAKEN_HEAD, TAKEN_MEAN, TAKEN_PATTERN, MASK, DROP),
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
            title=N_("The chosen query’s weights"),
            draw=lambda trace, s: row(trace, s.layer, s.head, s.query, s.key),
            selects={"x": "key"},
            mark=recomputed(PATTERN),
            inspect=cell(PATTERN, "head", "query", "x"),
            height=260,
        ),
        Panel(
            name="stages",
            alone=alone(ROWS),
            title=N_("The chosen query's numbers, from products to what is fetched"),
            draw=lambda trace, s: ladder(trace, s.layer, s.head, s.query, s.key),
            needs=("blocks.*.attn.scores", "blocks.*.attn.v"),
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
            needs=("blocks.*.attn.q", "blocks.*.attn.k"),
            inspect=lambda trace, s, point: dimension(trace, s.layer, s.head, s.query, s.key, point.of("item")),
            mark=mark_of_dimensions,
            height=260,
        ),
        Panel(
            name="scores",
            title=N_("What each head does: choose a head score above"),
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
            alone=alone(LINES),
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
