"""Table of the tokens: how well each was predicted, its bytes, and the byte-pair merges that built it."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from explorer.analysis.next_token import actual_token_ranks, entropy, surprisal
from explorer.errors import PointNotFoundError
from explorer.explain.notation import format_number, quote_token
from explorer.tracing.trace import Trace
from explorer.translations import N_, _, ngettext, translate
from explorer.views import graph_objects as go
from explorer.views.figure_template import FigureTemplate, text, value
from explorer.views.style import MONO, RESIDUAL, SELECTED, figure, label, row_band
from model.tokenizer import MergeStep, merge_steps

TINT, PALE = "rgba(0, 158, 115, 0.35)", "rgba(136, 136, 136, 0.12)"  # EMBEDDING and RESIDUAL, text upon them legible


def token_bytes(trace: Trace, token_id: int) -> bytes | None:
    """Return a token's bytes; None for a special token or an unknown tokenizer."""
    return trace.token_bytes[token_id] if token_id < len(trace.token_bytes) else None


def format_hex(trace: Trace, token_id: int, max_bytes: int | None = None) -> str:
    """Format a token's bytes as hexadecimal digits, at most `max_bytes`; "none" if they are unknown."""
    text = token_bytes(trace, token_id)
    if text is None:
        return _("none")
    return text[:max_bytes].hex(" ") + " …" * (max_bytes is not None and len(text) > max_bytes)


def piece_text(piece: bytes) -> str:
    """Decode bytes as UTF-8, or return them as hexadecimal escapes if they are not whole characters."""
    try:
        return piece.decode("utf-8")
    except UnicodeDecodeError:
        return "".join(f"\\x{byte:02x}" for byte in piece)


class TokenPieceBox(NamedTuple):
    """A piece in the figure: its row, its first byte, its bytes, and the merge that built it in this row, if any."""

    row: int
    start: int
    piece: bytes
    merge_step: MergeStep | None


def piece_boxes(first: Sequence[bytes], steps: Sequence[MergeStep]) -> Iterator[TokenPieceBox]:
    """Yield the initial pieces of a token, then its pieces after each merge."""
    rows = [(first, None), *((step.pieces, step) for step in steps)]
    for row, (pieces, step) in enumerate(rows):
        start = 0
        for index, piece in enumerate(pieces):
            yield TokenPieceBox(row, start, piece, step if step and step.index == index else None)
            start += len(piece)


def merge_label(box: TokenPieceBox) -> str:
    """Return a merge as text, as in "t + h → th", or the piece alone if no merge built it."""
    merged = label(piece_text(box.piece))
    return (
        f"{' + '.join(label(piece_text(piece)) for piece in box.merge_step.pair)} → {merged}"
        if box.merge_step
        else merged
    )


def find_merge_steps(trace: Trace, token_id: int) -> list[MergeStep]:
    """Return the merges that build a token; none if no merges do."""
    is_known = trace.merge_rules and token_bytes(trace, token_id)
    text = trace.merge_rules.pieces.get(token_id) if is_known else None
    steps = merge_steps(text, trace.merge_rules) if text else []
    return steps if steps and steps[-1].pieces == (text,) else []


def merge_tree(trace: Trace, query: int) -> go.Figure:
    """Draw the merges of the token: its bytes or characters in a row, and below them its pieces after each merge."""
    token_id = trace.token_ids[query]
    steps = find_merge_steps(trace, token_id)
    text = steps[-1].pieces[0] if steps else token_bytes(trace, token_id) or b""
    all_boxes = list(piece_boxes(trace.merge_rules.initial_pieces(text) if steps else (text,) * bool(text), steps))
    rows = [box.row for box in all_boxes]
    first = _("characters") if steps and trace.merge_rules.is_character_level else _("bytes")
    ids = [token_id if box.piece == text else trace.merge_rules.ids.get(box.piece) for box in all_boxes]
    hover = [
        _("{piece}<br>bytes {bytes}, no token by itself", piece=merge_label(box), bytes=box.piece.hex(" "))
        if piece_id is None
        else _("{piece}<br>id {id}, bytes {bytes}", piece=merge_label(box), id=piece_id, bytes=box.piece.hex(" "))
        for box, piece_id in zip(all_boxes, ids, strict=True)
    ]
    fig = figure(
        [
            go.Bar(
                orientation="h",
                base=[box.start for box in all_boxes],
                x=[len(box.piece) for box in all_boxes],
                y=rows,
                marker={
                    "color": [TINT if box.merge_step else PALE for box in all_boxes],
                    "line": {"color": [SELECTED if box.piece == text else RESIDUAL for box in all_boxes], "width": 1},
                },
                text=hover,
                textposition="none",
                hovertemplate="%{text}<extra></extra>",
            ),
            go.Scatter(  # not the bars' own texts, whose colours would not follow the theme
                x=[box.start + len(box.piece) / 2 for box in all_boxes],
                y=rows,
                text=[label(piece_text(box.piece)) for box in all_boxes],
                mode="text",
                textfont={"family": MONO, "size": 13},
                hoverinfo="skip",
            ),
        ],
        alt=describe_merges(trace, query, steps),
        xaxis={"visible": False, "range": [0, max(len(text), 1)], "fixedrange": True},
        yaxis={
            "range": [max(len(steps) + 1, 4) - 0.4, -0.6],
            "tickvals": sorted(set(rows)),
            "ticktext": [first, *(_("id {id}", id=step.token_id) for step in steps)],
            "tickfont": {"family": MONO, "size": 11},
            "showgrid": False,
            "zeroline": False,
            "fixedrange": True,
        },
        margin={"t": 8},
        showlegend=False,
    )
    if not steps:
        note = _("No merge: the tokenizer takes it whole.")
        if len(text) == 1:
            note = _("A single byte: no merge is needed.")
        if not text:
            note = _("A special token, or of a tokenizer not known here.")
        fig.add_annotation(text=note, x=0.5, y=0.4, xref="paper", yref="paper", showarrow=False)
    return fig


def describe_merges(trace: Trace, query: int, steps: Sequence[MergeStep]) -> str:
    """Describe the merges that built a token."""
    token = quote_token(trace.tokens[query])
    if not steps:
        return _("No merge built {token}.", token=token)
    merges = []
    for step in steps:
        pair = " + ".join(quote_token(piece_text(piece)) for piece in step.pair)
        merges.append(_("{pair} (id {id})", pair=pair, id=step.token_id))
    return ngettext(
        "{token} was built by {count} merge: {each}.",
        "{token} was built by {count} merges: {each}.",
        len(steps),
        token=token,
        each="; ".join(merges),
    )


MAX_ROWS = 20  # of the table
NUM_LESSON_COLUMNS = 3  # position, token and id: no lesson asks about the others
WIDTHS = {"position": 1.0, "token": 2.0, "id": 1.0, "bytes": 3.2, "surprisal": 1.6, "entropy": 1.6, "rank": 1.1}
TITLES = {
    "position": N_("position"),
    "token": N_("token"),
    "id": N_("id"),
    "bytes": N_("bytes"),
    "surprisal": N_("surprisal (bits)"),
    "entropy": N_("entropy (bits)"),
    "rank": N_("rank"),
}


def table_rows(length: int, query: int, max_rows: int = MAX_ROWS) -> range:
    """Return the positions of the table's rows, with the query in the middle where possible."""
    start = max(0, min(query - max_rows // 2, length - max_rows))
    return range(start, min(start + max_rows, length))


def column_by_x(x: float) -> str:
    """Return the table's column at a coordinate.

    Raises:
        PointNotFoundError: the table has no column there.
    """
    edges = np.cumsum(list(WIDTHS.values()))
    if not 0 <= x < edges[-1]:
        raise PointNotFoundError(_("the table has no column at {x}", x=x))
    return list(WIDTHS)[int(np.searchsorted(edges, x, side="right"))]


def draw_token_table(trace: Trace, query: int, num_columns: int = len(WIDTHS)) -> go.Figure:
    """Draw a row of facts for every token; of more than 20 tokens, the 20 around the query.

    Only the first `num_columns` columns are in sight.

    The three measures of how well it was predicted share one scale in bits, as log₂ of the rank is the bits it
    takes to write it. Uniform guessing has the middle colour, so that text on it is legible.
    """
    rows = table_rows(len(trace), query)
    bits, entropies, token_ranks = surprisal(trace)[rows], entropy(trace)[rows], actual_token_ranks(trace)[rows]
    ids = [trace.token_ids[i] for i in rows]
    columns = [
        [str(i) for i in rows],
        [label(trace.tokens[i]) for i in rows],
        [str(token_id) for token_id in ids],
        [format_hex(trace, token_id, max_bytes=7) for token_id in ids],
        ["–" if np.isnan(x) else f"{x:.2f}" for x in bits],
        ["–" if np.isnan(x) else f"{x:.2f}" for x in entropies],
        ["–" if np.isnan(x) else f"{x:.0f}" for x in token_ranks],
    ]
    for column in (0, 2, 4, 5, 6):
        num_chars = max(map(len, columns[column]))
        columns[column] = [text.rjust(num_chars, "\u2007") for text in columns[column]]
    shade = np.zeros((len(rows), len(WIDTHS)), np.float32)
    shade[:, 4:] = np.nan_to_num(np.stack([bits, entropies, np.log2(token_ranks)], axis=1))
    edges = np.concatenate([[0], np.cumsum(list(WIDTHS.values()))])
    hover = [
        [format_row(trace, i, *numbers)] * len(WIDTHS)
        for i, *numbers in zip(rows, bits, entropies, token_ranks, strict=True)
    ]
    return TABLE_FIGURE.draw(
        edges=edges,
        rows=np.array(rows),
        shades=shade,
        most=2 * float(np.log2(trace.config.vocab_size)),
        cells=[list(row) for row in zip(*columns, strict=True)],
        hover=hover,
        positions=np.repeat(np.array(rows)[:, None], len(WIDTHS), axis=1),
        first=rows[0],
        last=rows[-1],
        total=len(trace),
        token=quote_token(trace.tokens[query]),
        fact=describe_token(trace, query),
        middles=(edges[:-1] + edges[1:]) / 2,
        titles=[translate(TITLES[name]) for name in WIDTHS],
        column_range=[0, edges[num_columns]],
        row_range=[rows[0] + max(len(rows), 8) - 0.4, rows[0] - 0.6],
        band=row_band(query, 2),
    ).set_meta(numbers="text")


TABLE_FIGURE = FigureTemplate(
    alt=text(
        N_(
            "Table of positions {first} to {last} of {total}: token, id, bytes, surprisal, entropy and rank. Chosen: "
            "{token}, {fact}."
        )
    ),
    traces=[
        go.Heatmap(
            x=value("edges"),
            y=value("rows"),
            z=value("shades"),
            zmin=0,
            zmax=value("most"),
            text=value("cells"),
            texttemplate="%{text}",
            textfont={"family": MONO, "size": 12},
            hovertext=value("hover"),
            hovertemplate="%{hovertext}<extra></extra>",
            customdata=value("positions"),
            showscale=False,
            ygap=1,
        )
    ],
    layout={
        "xaxis": {
            "side": "top",
            "tickvals": value("middles"),
            "ticktext": value("titles"),
            "range": value("column_range"),
            "showgrid": False,
            "zeroline": False,
            "fixedrange": True,
        },
        "yaxis": {"range": value("row_range"), "visible": False, "fixedrange": True},
        "shapes": [value("band")],
    },
)


def format_row(trace: Trace, position: int, bits: float, expected_bits: float, token_rank: float) -> str:
    """Format a row of the table in full, as Plotly text."""
    token_id = trace.token_ids[position]
    lines = [
        _("{token} at position {position}", token=label(trace.tokens[position], max_chars=40), position=position),
        _("id {id}, bytes {bytes}", id=token_id, bytes=format_hex(trace, token_id, max_bytes=24)),
    ]
    if np.isnan(bits):
        return "<br>".join([*lines, _("the first token: nothing predicted it")])
    return "<br>".join(
        [
            *lines,
            _(
                "probability {probability}, surprisal {bits} bits",
                probability=format_number(2.0**-bits),
                bits=format_number(bits),
            ),
            _("expected: {bits} bits (entropy)", bits=format_number(expected_bits)),
            _("rank {rank:.0f} of {size:,} tokens", rank=token_rank, size=trace.config.vocab_size),
        ]
    )


def describe_token(trace: Trace, query: int) -> str:
    """Describe a token's surprisal and rank."""
    bits, token_rank = surprisal(trace)[query], actual_token_ranks(trace)[query]
    if np.isnan(bits):
        return _("the first")
    return _("surprisal {bits} bits, rank {rank:.0f}", bits=format_number(bits), rank=token_rank)
