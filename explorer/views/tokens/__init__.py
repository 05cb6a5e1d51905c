"""Tokens: how text becomes pieces, and pieces become vectors."""

import numpy as np

from explorer.analysis.embedding import embedding_parts
from explorer.analysis.next_token import rank, surprisal
from explorer.architecture.embedding import factor, factor_in_numbers
from explorer.architecture.stream import block_output
from explorer.explain.analysed.embedding import component, similar, table_row
from explorer.explain.analysed.prediction import PREDICTED, predicted
from explorer.explain.captured import derivation_of
from explorer.explain.derivation import Derivation
from explorer.explain.notation import number, quoted
from explorer.explain.point import Point, nth
from explorer.language import N_, _
from explorer.state.errors import NoSuchPoint
from explorer.state.selection import Selection
from explorer.tracing.trace import Trace
from explorer.views.checks import Mark, cell, given, recomputed, worked_out
from explorer.views.position_table import position_table
from explorer.views.tokens.embedding import MOST_NEIGHBOURS, nearest, spread, vector
from explorer.views.tokens.facts import column_at, table
from explorer.views.tokens.merges import in_hex, tree
from explorer.views.two_runs.alone import LISTS, PLANE, alone
from explorer.views.view import Panel, View


def formula(trace: Trace, selection: Selection) -> str:
    query, config = selection.query, trace.config
    token_id, parts = trace.token_ids[query], embedding_parts(trace, query)
    dim = min(selection.dim, config.d_model - 1)
    symbols, numbers = f"row[{dim}]", number(parts.row[dim])
    if parts.scale != 1:
        symbols, numbers = f"{symbols} · {factor(config)}", f"{numbers} · {factor_in_numbers(config)}"
    if parts.position is not None:
        symbols, numbers = f"{symbols} + position[{dim}]", f"{numbers} + {number(parts.position[dim])}"
    total = f" = {number(parts.total[dim])}" if parts.scale != 1 or parts.position is not None else ""
    bits = surprisal(trace)[query]
    lines = (
        _(
            "{token} ({position}): bytes {bytes} → id {id} → row {id} of the {size:,} × {width} embedding table",
            token=quoted(trace.tokens[query]),
            position=query,
            bytes=in_hex(trace, token_id, most=24),
            id=token_id,
            size=config.vocab_size,
            width=config.d_model,
        ),
        _(
            "embedding[{dim}] = {sum}   recomputed in all {width} dimensions, off by {error}",
            dim=dim,
            sum=f"{symbols} = {numbers}{total}",
            width=config.d_model,
            error=number(parts.error),
        ),
        _("nothing predicted it: it is the first")
        if np.isnan(bits)
        else _(
            "surprisal = −log₂ p = −log₂ {probability} = {bits} bits, rank {rank:.0f} of {size:,}",
            probability=number(2.0**-bits),
            bits=number(bits),
            rank=rank(trace)[query],
            size=config.vocab_size,
        ),
    )
    return "\n".join(lines)


def inspect_prediction(trace: Trace, selection: Selection, point: Point) -> Derivation | None:
    """A measure in the table; None of its columns of text."""
    if point.row >= len(trace):
        raise NoSuchPoint(_("the table has no row {row}", row=point.row))
    measure = column_at(point.x)
    return predicted(trace, point.row, measure) if measure in PREDICTED else None


def mark_of_stream(trace: Trace, selection: Selection) -> Mark:
    inside = selection.depth < trace.config.num_layers
    last = block_output(trace.config, selection.depth - 1)
    return worked_out("blocks.{depth}.resid_pre" if inside else last)(trace, selection)


def inspect_vector(trace: Trace, selection: Selection, point: Point) -> Derivation:
    """Each row has the bars of all dimensions, and where one is chosen the same bar again in its colour."""
    dim, rows = point.column, ("token", "position", "sum") if "position_embed" in trace else ("token",)
    if dim >= trace.config.d_model:
        raise NoSuchPoint(_("there is no dimension {dimension}", dimension=dim))
    row = nth(rows, point.of("curve") // (1 + (selection.dim < trace.config.d_model)))
    if row == "token":
        return table_row(trace, selection.query, dim)
    return derivation_of(trace, {"position": "position_embed", "sum": "embed"}[row], (selection.query, dim))


def inspect_spread(trace: Trace, selection: Selection, point: Point) -> tuple[Derivation, Derivation]:
    """Both coordinates of a token."""
    first = int(selection.first_token == "hidden" and len(trace) > 1)
    position = first + point.of("item")
    across, up = (component(trace, selection.depth, position, which, first) for which in (0, 1))
    return across, up


VIEW = View(
    name="tokens",
    title=N_("Tokens"),
    words=N_(
        "The model reads not letters but tokens: pieces of text that byte-pair encoding (BPE) built, joining again and "
        "again the two neighbours most often seen together in its training text. "
        "Every token has a number, its id, and for each id a table holds a list of numbers, its vector: the embedding, "
        "with which the computation begins. "
        "Choose a token to see how it was built, how well it was predicted, and which tokens have vectors like its own."
    ),
    formula=formula,
    needs=("embed", "blocks.*.resid_pre", "blocks.*.resid_post", "logits", "token_embedding.weight"),
    otherwise=lambda config: _("Nothing was captured from this model."),
    controls=("query", "depth", "first_token"),
    panels=(
        Panel(
            name="table",
            alone=alone(LISTS),
            title=N_("Each token, and how well it was predicted from those before it"),
            draw=lambda trace, s: table(trace, s.query),
            selects={"customdata": "query"},
            mark=worked_out("logits"),
            inspect=inspect_prediction,
            height=420,
            min_width=640,
        ),
        Panel(
            name="merges",
            alone=alone(LISTS),
            title=N_("The merges that built the chosen token, and the id of what each made"),
            draw=lambda trace, s: tree(trace, s.query),
            no_inspection=N_("it shows pieces of text and ids, and none of them is worked out"),
            mark=given(N_("nothing computed: as the tokenizer’s table has it")),
            height=340,
            width="half",
        ),
        Panel(
            name="nearest",
            alone=alone(LISTS),
            title=N_("The tokens with the most similar vectors"),
            draw=lambda trace, s: nearest(trace, s.query),
            inspect=lambda trace, s, point: similar(trace, s.query, point.of("item"), MOST_NEIGHBOURS),
            mark=worked_out("token_embedding.weight"),
            height=340,
            width="half",
        ),
        Panel(
            name="vector",
            title=N_("The chosen token’s vector, dimension by dimension"),
            draw=lambda trace, s: vector(trace, s.query, s.dim),
            inspect=inspect_vector,
            selects={"x": "dim"},
            mark=recomputed("embed", "position_embed"),
            height=300,
        ),
        Panel(
            name="spread",
            alone=alone(PLANE),
            title=N_("All tokens at the chosen depth, along the two directions in which they differ most (PCA)"),
            draw=lambda trace, s: spread(trace, s.depth, s.query, s.first_token == "hidden"),
            inspect=inspect_spread,
            mark=mark_of_stream,
            selects={"customdata": "query"},
            height=420,
            width="half",
        ),
        Panel(
            name="positions",
            alone=alone(PLANE),
            title=N_("The vector that is added for each position"),
            draw=lambda trace, s: position_table(trace, s.query, s.dim),
            needs=("position_embed",),
            selects={"x": "dim", "y": "query"},
            mark=recomputed("position_embed"),
            inspect=cell("position_embed", "y", "x"),
            height=420,
            width="half",
        ),
    ),
)
