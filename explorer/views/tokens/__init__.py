"""Tokens view: the text as tokens, and tokens as vectors."""

from collections.abc import Sequence

import numpy as np

from explorer.analysis.embedding import (
    embedding_parts,
    embedding_row_element,
    nearest_token_cosine,
    nearest_tokens,
    principal_component_coordinate,
    residual_pca,
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
from explorer.explain.captured import derive
from explorer.explain.derivation import ClickedPoint, Derivation, get_item
from explorer.explain.notation import format_factor, format_number, format_percent, format_six_digits, quote_token
from explorer.state.selection import Selection
from explorer.tracing.trace import Trace
from explorer.translations import N_, _, translate
from explorer.views import graph_objects as go
from explorer.views.figure_template import FigureTemplate, each, extend, text, value
from explorer.views.shared_plots import POSITION_VECTORS_FIGURE, position_vector_map
from explorer.views.style import EMBEDDING, MONO, RESIDUAL, SELECTED, annotate_empty, figure, label, position_labels
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
from explorer.views.view import LISTS, PLANE, Panel, View

MAX_NEIGHBOURS = 15
MARGIN = {"t": 8}  # nothing stands above the plot


def vector_bars(trace: Trace, query: int, dim: int | None = None) -> go.Figure:
    """Draw the token’s embedding as bars over its dimensions.

    With added positions: both summands above their sum, on one scale.
    """
    parts = embedding_parts(trace, query)
    times = embedding_scale_formula(trace.config)
    rows = {_("embedding × {factor}", factor=times) if times else _("embedding"): parts.row * parts.scale}
    if parts.position is not None:
        rows |= {_("position"): parts.position, _("their sum"): parts.total}
    largest = float(max(np.abs(row).max() for row in rows.values())) or 1.0
    bars, axes, has_chosen = [], {}, dim is not None and dim < trace.config.d_model
    for i, (name, row) in enumerate(rows.items()):
        top, share = 1 - i / len(rows), 1 / len(rows)
        axes[f"yaxis{i + 1}" if i else "yaxis"] = {
            "domain": [max(0.0, top - share + 0.03), top],
            "range": [-1.05 * largest, 1.05 * largest],
            "title": {"text": name},
            "nticks": 5,
        }
        row_bars = {"name": name, "axis": f"y{i + 1}" if i else "y"}
        bars.append({"dims": np.arange(len(row)), "values": row, "marker": {"color": EMBEDDING}, **row_bars})
        if has_chosen:
            bars.append({"dims": [dim], "values": [row[dim]], "marker": {"color": SELECTED}, **row_bars})
    return VECTOR_FIGURE.draw(
        bars=bars,
        axes=axes,
        token=quote_token(trace.tokens[query]),
        position=query,
        dimensions=trace.config.d_model,
        least=format_number(parts.total.min()),
        most=format_number(parts.total.max()),
        parts=", ".join(rows),
        anchor=f"y{len(rows)}" if len(rows) > 1 else "y",
        range=[-1, trace.config.d_model],
        gap=0.15 if trace.config.d_model <= 256 else 0,
    )


VECTOR_FIGURE = FigureTemplate(
    alt=text(N_("Embedding of {token} at position {position} in {dimensions} dimensions, {least} to {most}: {parts}.")),
    traces=[
        each(
            "bars",
            go.Bar(
                x=value("dims"),
                y=value("values"),
                yaxis=value("axis"),
                marker=value("marker"),
                hovertemplate=text(N_("{name}, dimension %{{x}}<br>%{{y:.4g}}<extra></extra>")),
            ),
        )
    ],
    layout=extend(
        "axes",
        xaxis={
            "title": {"text": text(N_("dimension"))},
            "showgrid": False,
            "anchor": value("anchor"),
            "range": value("range"),
        },
        margin=MARGIN,
        barmode="overlay",
        bargap=value("gap"),
        hovermode="x",  # a thin bar is hard to hit
        showlegend=False,
    ),
)


def nearest_tokens_bars(trace: Trace, query: int) -> go.Figure:
    """Draw the tokens of the vocabulary with the nearest embeddings, as bars of their cosine."""
    ids, cosines = nearest_tokens(trace, trace.token_ids[query], MAX_NEIGHBOURS)
    rows = np.arange(len(ids))
    texts = [label(trace.vocabulary[i]) for i in ids]
    token = trace.tokens[query]
    few = ", ".join(
        f"{quote_token(trace.vocabulary[i])} {format_number(c)}" for i, c in list(zip(ids, cosines, strict=True))[:3]
    )
    return NEAREST_FIGURE.draw(
        cosines=cosines,
        rows=rows,
        hover=[_("{token}, id {id}", token=text, id=i) for text, i in zip(texts, ids, strict=True)],
        labels=texts,
        token=quote_token(token),
        label=label(token),
        nearest=few,
        range=[min(0.0, float(cosines.min())), 1],
        rows_range=[len(ids) - 0.4, -0.6],
    )


NEAREST_FIGURE = FigureTemplate(
    alt=text(N_("Tokens nearest to {token} by the cosine of their embeddings: {nearest}.")),
    traces=[
        go.Bar(
            orientation="h",
            x=value("cosines"),
            y=value("rows"),
            text=value("hover"),
            textposition="none",
            marker={"color": EMBEDDING},
            hovertemplate=text(N_("%{text}<br>cosine %{x:.3f}<extra></extra>")),
        )
    ],
    layout={
        "xaxis": {
            "title": {"text": text(N_("cosine similarity with {label}"))},
            "range": value("range"),
        },
        "yaxis": {
            "title": {"text": text(N_("token"))},
            "tickvals": value("rows"),
            "ticktext": value("labels"),
            "tickfont": {"family": MONO, "size": 11},
            "range": value("rows_range"),
            "showgrid": False,
            "zeroline": False,
        },
        "margin": MARGIN,
    },
)


AFTER_BLOCK = N_(
    "{tokens} tokens after block {block} along the two directions in which they differ most, which hold {first} and "
    "{second} of the variance."
)
AS_EMBEDDED = N_(
    "{tokens} tokens as embedded along the two directions in which they differ most, which hold {first} and {second} "
    "of the variance."
)


def pca_plot(trace: Trace, depth: int, query: int, hide_first: bool = False) -> go.Figure:
    """Draw the first two principal components of the tokens' vectors after some blocks.

    Labels that would overlap others are left out; hover texts have them all. The first token, often far from
    all others, can be left out.
    """
    first = int(hide_first and len(trace) > 1)
    pca = residual_pca(trace, depth, first)
    tokens, chosen = trace.tokens[first:], query - first
    x, y = pca.points.T
    texts = [label(token) for token in tokens]
    labelled = readable_labels(pca.points, [len(text) for text in texts], chosen)
    first_share, second_share = (f"{share:.0%}" for share in pca.shares[:2])
    color = RESIDUAL if depth else EMBEDDING
    fig = figure(
        go.Scatter(
            x=x,
            y=y,
            mode="markers+text",
            text=[text if i in labelled else "" for i, text in enumerate(texts)],
            textposition="top center",
            textfont={"family": MONO, "size": 11},
            marker={
                "color": [SELECTED if i == chosen else color for i in range(len(tokens))],
                "size": [11 if i == chosen else 7 for i in range(len(tokens))],
            },
            customdata=np.arange(first, len(trace)),
            hovertext=position_labels(trace.tokens)[first:],
            hovertemplate="%{hovertext}<br>(%{x:.3g}, %{y:.3g})<extra></extra>",
            cliponaxis=False,
        ),
        alt=translate(
            AFTER_BLOCK if depth else AS_EMBEDDED,
            tokens=len(tokens),
            block=depth - 1,
            first=first_share,
            second=second_share,
        ),
        xaxis={"title": {"text": _("component 1 ({share} of the variance)", share=first_share)}},
        yaxis={"title": {"text": _("component 2 ({share})", share=second_share)}},
        margin={"t": 20},
    )
    if not np.isfinite(pca.points).all():
        annotate_empty(
            fig, _("a vector holds something that is not a number (NaN or infinite): there are no directions to show")
        )
    return fig


def readable_labels(points: np.ndarray, label_lengths: Sequence[int], chosen_index: int) -> set[int]:
    """Return the indices of the points (T, 2) whose label above them overlaps no other label and no other point.

    The chosen point always has its label; the others are considered in order. Sizes are those of a plot of 300
    by 320 pixels.

    Args:
        label_lengths: in characters.
    """
    extent = np.maximum(np.ptp(points, axis=0), 1e-12)
    x, y = ((points - points.min(0)) / extent * [300, 320]).T
    widths = 7 * np.array(label_lengths)
    labelled: list[int] = []
    for i in sorted(range(len(points)), key=lambda i: (i != chosen_index, i)):
        overlaps = (np.abs(x[labelled] - x[i]) < (widths[labelled] + widths[i]) / 2) & (np.abs(y[labelled] - y[i]) < 13)
        hidden_points = (
            (np.abs(x - x[i]) < widths[i] / 2 + 4) & (y > y[i] + 1) & (y < y[i] + 20)
        )  # points that it would hide
        if i == chosen_index or not (overlaps.any() or hidden_points.any()):
            labelled.append(i)
    return set(labelled)


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
    row, measure = get_item(range(len(trace)), point.row), column_by_x(point.x)
    return prediction_measure(trace, row, measure) if measure in PREDICTION_MEASURES else None


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
    dim = get_item(range(trace.config.d_model), point.column)
    rows = ("token", "position", "sum") if "position_embed" in trace else ("token",)
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
            no_difference_reason=LISTS,
            title=N_("The tokens, a row each"),
            draw=lambda trace, s: draw_token_table(trace, s.query, NUM_LESSON_COLUMNS if s.lesson else len(WIDTHS)),
            click_selects={"customdata": "query"},
            verify=verify_derived("logits"),
            inspect=inspect_table_cell,
            height=420,
            min_width=600,
        ),
        Panel(
            name="merges",
            no_difference_reason=LISTS,
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
            no_difference_reason=LISTS,
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
            no_difference_reason=PLANE,
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
            no_difference_reason=PLANE,
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
