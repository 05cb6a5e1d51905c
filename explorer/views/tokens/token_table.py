"""Table of the tokens, and of how well each was predicted."""

import numpy as np

from explorer.analysis.next_token import actual_token_ranks, entropy, surprisal
from explorer.errors import PointNotFoundError
from explorer.explain.notation import format_number, quote_token
from explorer.tracing.trace import Trace
from explorer.translations import N_, _, translate
from explorer.views import graph_objects as go
from explorer.views.figure_template import FigureTemplate, text, value
from explorer.views.style import MONO, label, row_band
from explorer.views.tokens.byte_pair_merges import format_hex

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
        ),
        *("first", "last", "total", "token", "fact"),
    ),
    traces=[
        {
            "type": "heatmap",
            "x": value("edges"),
            "y": value("rows"),
            "z": value("shades"),
            "zmin": 0,
            "zmax": value("most"),
            "autocolorscale": True,
            "text": value("cells"),
            "texttemplate": "%{text}",
            "textfont": {"family": MONO, "size": 12},
            "hovertext": value("hover"),
            "hovertemplate": "%{hovertext}<extra></extra>",
            "customdata": value("positions"),
            "showscale": False,
            "ygap": 1,
        }
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
