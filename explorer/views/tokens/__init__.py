"""Tokens view: the text as tokens, and tokens as vectors."""

import numpy as np

from explorer.analysis.embedding import (
    embedding_parts,
    embedding_row_element,
    nearest_token_cosine,
    principal_component_coordinate,
)
from explorer.analysis.next_token import (
    PREDICTION_MEASURES,
    actual_token_ranks,
    next_token_distribution,
    prediction_measure,
    surprisal,
)
from explorer.architecture.formulas import embedding_scale_formula, embedding_scale_in_numbers
from explorer.architecture.residual_stream import block_output_tap
from explorer.errors import PointNotFoundError
from explorer.explain.captured import derive
from explorer.explain.derivation import ClickedPoint, Derivation, get_item
from explorer.explain.notation import format_factor, format_number, format_percent, format_six_digits, quote_token
from explorer.state.selection import Selection
from explorer.tracing.trace import Trace
from explorer.translations import N_, _, translate
from explorer.views.shared_plots import POSITION_VECTORS_FIGURE, position_vector_map
from explorer.views.tokens.embedding import (
    MAX_NEIGHBOURS,
    NEAREST_FIGURE,
    VECTOR_FIGURE,
    nearest_tokens_bars,
    pca_plot,
    vector_bars,
)
from explorer.views.tokens.token_table import (
    NUM_LESSON_COLUMNS,
    TABLE_FIGURE,
    WIDTHS,
    column_by_x,
    draw_token_table,
    format_hex,
    merge_tree,
)
from explorer.views.verification import Verification, inspect_captured, make_unverified, verify_captured, verify_derived
from explorer.views.view import LISTS, PLANE, Panel, View, make_no_difference_reason


def describe_token_vector(trace: Trace, selection: Selection) -> str:
    """Return the selected token's embedding, element by element."""
    query, config = selection.query, trace.config
    token_id, parts = trace.token_ids[query], embedding_parts(trace, query)
    dim = min(selection.dim, config.d_model - 1)
    symbols, numbers = f"row[{dim}]", format_six_digits(parts.row[dim])
    if parts.scale != 1:
        symbols, numbers = (
            f"{symbols} · {embedding_scale_formula(config)}",
            f"{numbers} · {embedding_scale_in_numbers(config)}",
        )
    if parts.position is not None:
        symbols, numbers = f"{symbols} + position[{dim}]", f"{numbers} + {format_factor(parts.position[dim])}"
    total = f" = {format_six_digits(parts.total[dim])}" if parts.scale != 1 or parts.position is not None else ""
    bits = surprisal(trace)[query]
    lines = (
        _(
            "{token} ({position}): bytes {bytes} → id {id} → row {id} of the {size:,} × {width} embedding table",
            token=quote_token(trace.tokens[query]),
            position=query,
            bytes=format_hex(trace, token_id, max_bytes=24),
            id=token_id,
            size=config.vocab_size,
            width=config.d_model,
        ),
        _(
            "embedding[{dim}] = {sum}   recomputed in all {width} dimensions, off by {error}",
            dim=dim,
            sum=f"{symbols} = {numbers}{total}",
            width=config.d_model,
            error=format_number(parts.error),
        ),
        _("nothing predicted it: it is the first")
        if np.isnan(bits)
        else _(
            "surprisal = −log₂ p = −log₂ {probability} = {bits} bits, rank {rank:.0f} of {size:,}",
            probability=format_six_digits(2.0**-bits),
            bits=format_six_digits(bits),
            rank=actual_token_ranks(trace)[query],
            size=config.vocab_size,
        ),
    )
    return "\n".join(lines)


def tokens_sentence(trace: Trace, selection: Selection) -> str:
    """Return what the model expected in the selected token's place; at the first, the text's least likely token."""
    query, probabilities = selection.query, 2.0 ** -surprisal(trace)  # (T,), NaN for the first
    if np.isnan(probabilities[1:]).any():
        return _("Not all of its guesses are numbers.")
    if query:
        expected = expected_instead(trace, query)
    elif len(trace) == 1:
        expected = translate(NOTHING_BEFORE)
    else:
        least = 1 + int(probabilities[1:].argmin())
        expected = translate(
            EXPECTED_LATER,
            least=quote_token(trace.tokens[least]),
            percent=format_percent(float(probabilities[least])),
        )
    return f"{expected} {translate(TOKEN_ROWS)}"


def expected_instead(trace: Trace, position: int) -> str:
    """Return the likeliest tokens in a token's place, and its own probability."""
    shares, token_id = next_token_distribution(trace, position - 1).plain, trace.token_ids[position]
    guesses = trace.logits.top(MAX_GUESSES, position - 1).tolist()
    template = EXPECTED_MOST if guesses[0] == token_id else EXPECTED_OTHERS
    return translate(
        template,
        before=quote_token(trace.tokens[position - 1]),
        guesses=", ".join(format_guess(trace, shares, guess) for guess in guesses if guess != token_id),
        token=format_guess(trace, shares, token_id),
    )


def format_guess(trace: Trace, shares: np.ndarray, token_id: int) -> str:
    """Return a token in quotes with its probability."""
    return f"{quote_token(trace.vocabulary[token_id])} {format_percent(float(shares[token_id]))}"


MAX_GUESSES = 2


NOTHING_BEFORE = N_("Nothing comes before the first token, so nothing predicted it.")
EXPECTED_OTHERS = N_("After {before} the model expected {guesses}; {token}.")
EXPECTED_MOST = N_("After {before} the model most expected {token}, then {guesses}.")
EXPECTED_LATER = N_(
    "Nothing predicted the first token; of the others the model expected {least} least, with {percent}."
)
TOKEN_ROWS = N_("Choose a token: how it was built.")


def inspect_table_cell(trace: Trace, selection: Selection, point: ClickedPoint) -> Derivation | None:
    """Derive a measure in the table; None for its columns of text.

    Raises:
        PointNotFoundError: the table has no such row or column.
    """
    if point.row >= len(trace):
        raise PointNotFoundError(_("the table has no row {row}", row=point.row))
    measure = column_by_x(point.x)
    return prediction_measure(trace, point.row, measure) if measure in PREDICTION_MEASURES else None


def verify_stream(trace: Trace, selection: Selection) -> Verification:
    """Verify the residual stream at the selected depth."""
    inside = selection.residual_depth < trace.config.num_layers
    last = block_output_tap(trace.config, selection.residual_depth - 1)
    return verify_derived("blocks.{residual_depth}.resid_pre" if inside else last)(trace, selection)


def inspect_vector(trace: Trace, selection: Selection, point: ClickedPoint) -> Derivation:
    """Derive an element of the token's vectors.

    Each row has the bars of all dimensions and, if a dimension is chosen, a second trace with its bar
    highlighted.
    """
    dim, rows = point.column, ("token", "position", "sum") if "position_embed" in trace else ("token",)
    if dim >= trace.config.d_model:
        raise PointNotFoundError(_("there is no dimension {dimension}", dimension=dim))
    row = get_item(rows, point.coordinate("curve") // (1 + (selection.dim < trace.config.d_model)))
    if row == "token":
        return embedding_row_element(trace, selection.query, dim)
    return derive(trace, {"position": "position_embed", "sum": "embed"}[row], (selection.query, dim))


def inspect_pca_point(trace: Trace, selection: Selection, point: ClickedPoint) -> tuple[Derivation, Derivation]:
    """Derive both coordinates of a token."""
    first = int(selection.first_token == "hidden" and len(trace) > 1)
    position = first + point.coordinate("item")
    across, up = (
        principal_component_coordinate(trace, selection.residual_depth, position, component, first)
        for component in (0, 1)
    )
    return across, up


VIEW = View(
    name="tokens",
    title=N_("Tokens"),
    group="components",
    order=20,
    description=N_(
        "Text is cut into tokens by byte-pair merges; each has an id and a vector. Choose one: how it was built, what "
        "resembles it."
    ),
    sentence=tokens_sentence,
    formula=describe_token_vector,
    required_taps=("embed", "blocks.*.resid_pre", "blocks.*.resid_post", "logits", "token_embedding.weight"),
    unavailable_message=lambda config: _("Nothing was captured from this model."),
    controls=("query", "residual_depth", "first_token"),
    code=("model.transformer_lm:TransformerLM.embed_tokens",),
    code_lines=("x = self.token_embedding(",),
    panels=(
        Panel(
            name="table",
            template=TABLE_FIGURE,
            no_difference_reason=make_no_difference_reason(LISTS),
            title=N_("The tokens, a row each"),
            draw=lambda trace, s: draw_token_table(trace, s.query, NUM_LESSON_COLUMNS if s.lesson else len(WIDTHS)),
            click_selects={"customdata": "query"},
            verify=verify_derived("logits"),
            inspect=inspect_table_cell,
            height=420,
            min_width=640,
        ),
        Panel(
            name="merges",
            no_difference_reason=make_no_difference_reason(LISTS),
            title=N_("The merges that built the chosen token"),
            heading=N_("The merges that built {query}, with their ids"),
            draw=lambda trace, s: merge_tree(trace, s.query),
            no_inspection=N_("it shows text and ids, no computed numbers"),
            verify=make_unverified(N_("nothing to check: this is read from the tokenizer’s own list of tokens")),
            height=340,
            width="half",
        ),
        Panel(
            name="nearest",
            template=NEAREST_FIGURE,
            no_difference_reason=make_no_difference_reason(LISTS),
            title=N_("The tokens with the most similar vectors"),
            draw=lambda trace, s: nearest_tokens_bars(trace, s.query),
            inspect=lambda trace, s, point: nearest_token_cosine(
                trace, s.query, point.coordinate("item"), MAX_NEIGHBOURS
            ),
            verify=verify_derived("token_embedding.weight"),
            height=340,
            width="half",
        ),
        Panel(
            name="vector",
            template=VECTOR_FIGURE,
            title=N_("The chosen token’s vector, by dimension"),
            heading=N_("The vector of {query}, dimension by dimension"),
            draw=lambda trace, s: vector_bars(trace, s.query, s.dim),
            inspect=inspect_vector,
            click_selects={"x": "dim"},
            verify=verify_captured("embed", "position_embed"),
            height=300,
        ),
        Panel(
            name="spread",
            no_difference_reason=make_no_difference_reason(PLANE),
            title=N_("All tokens along their two main directions (PCA)"),
            draw=lambda trace, s: pca_plot(trace, s.residual_depth, s.query, s.first_token == "hidden"),
            inspect=inspect_pca_point,
            verify=verify_stream,
            click_selects={"customdata": "query"},
            height=420,
            width="half",
        ),
        Panel(
            name="positions",
            template=POSITION_VECTORS_FIGURE,
            no_difference_reason=make_no_difference_reason(PLANE),
            title=N_("The vector that is added for each position"),
            draw=lambda trace, s: position_vector_map(trace, s.query, s.dim),
            required_taps=("position_embed",),
            click_selects={"x": "dim", "y": "query"},
            verify=verify_captured("position_embed"),
            inspect=inspect_captured("position_embed", "y", "x"),
            height=420,
            width="half",
        ),
    ),
)
