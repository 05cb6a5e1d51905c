"""What each token is, and how well it was predicted."""

import numpy as np

from explorer.analysis.next_token import entropy, rank, surprisal
from explorer.explain.notation import number, quoted
from explorer.language import N_, _, look_up
from explorer.state.errors import NoSuchPoint
from explorer.tracing.trace import Trace
from explorer.views import graph_objects as go
from explorer.views.style import MONO, SELECTED, figure, label
from explorer.views.tokens.merges import in_hex

MOST_ROWS = 20  # of the table
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


def window(length: int, query: int, most: int = MOST_ROWS) -> range:
    """As many positions as are shown at once, the query in their middle where there are as many on either side."""
    start = max(0, min(query - most // 2, length - most))
    return range(start, min(start + most, length))


def column_at(x: float) -> str:
    """Which column of the table lies at a place across it. NoSuchPoint where none does."""
    edges = np.cumsum(list(WIDTHS.values()))
    if not 0 <= x < edges[-1]:
        raise NoSuchPoint(_("the table has no column at {x}", x=x))
    return list(WIDTHS)[int(np.searchsorted(edges, x, side="right"))]


def table(trace: Trace, query: int) -> go.Figure:
    """Every token's facts, a row each; of more than 20 the 20 about the query.

    The three measures of how well it was predicted share one scale in bits, log₂ of the rank being the bits it takes to
    write it; a guess at random has its middle colour, so that text upon it can be read.
    """
    rows = window(len(trace), query)
    bits, expected, place = surprisal(trace)[rows], entropy(trace)[rows], rank(trace)[rows]
    ids = [trace.token_ids[i] for i in rows]
    written = [
        [str(i) for i in rows],
        [label(trace.tokens[i]) for i in rows],
        [str(token_id) for token_id in ids],
        [in_hex(trace, token_id, most=7) for token_id in ids],
        ["–" if np.isnan(x) else f"{x:.2f}" for x in bits],
        ["–" if np.isnan(x) else f"{x:.2f}" for x in expected],
        ["–" if np.isnan(x) else f"{x:.0f}" for x in place],
    ]
    for column in (0, 2, 4, 5, 6):
        longest = max(map(len, written[column]))
        written[column] = [text.rjust(longest, "\u2007") for text in written[column]]
    shade = np.zeros((len(rows), len(WIDTHS)), np.float32)
    shade[:, 4:] = np.nan_to_num(np.stack([bits, expected, np.log2(place)], axis=1))
    edges = np.concatenate([[0], np.cumsum(list(WIDTHS.values()))])
    hover = [[fact(trace, i, *numbers)] * len(WIDTHS) for i, *numbers in zip(rows, bits, expected, place, strict=True)]
    fig = figure(
        go.Heatmap(
            x=edges,
            y=np.array(rows),
            z=shade,
            zmin=0,
            zmax=2 * float(np.log2(trace.config.vocab_size)),
            autocolorscale=True,
            text=[list(row) for row in zip(*written, strict=True)],
            texttemplate="%{text}",
            textfont={"family": MONO, "size": 12},
            hovertext=hover,
            hovertemplate="%{hovertext}<extra></extra>",
            customdata=np.repeat(np.array(rows)[:, None], len(WIDTHS), axis=1),
            showscale=False,
            ygap=1,
        ),
        alt=_(
            "Table of positions {first} to {last} of {total}: token, id, bytes, surprisal, entropy and rank. Chosen: "
            "{token}, {fact}.",
            first=rows[0],
            last=rows[-1],
            total=len(trace),
            token=quoted(trace.tokens[query]),
            fact=fact_in_words(trace, query),
        ),
        xaxis={
            "side": "top",
            "tickvals": (edges[:-1] + edges[1:]) / 2,
            "ticktext": [look_up(TITLES[name]) for name in WIDTHS],
            "range": [0, edges[-1]],
            "showgrid": False,
            "zeroline": False,
            "fixedrange": True,
        },
        yaxis={
            "range": [rows[0] + max(len(rows), 8) - 0.4, rows[0] - 0.6],
            "visible": False,
            "fixedrange": True,
        },
    )
    fig.add_hrect(query - 0.5, query + 0.5, line={"color": SELECTED, "width": 2})
    return fig


def fact(trace: Trace, position: int, bits: float, expected: float, place: float) -> str:
    """A row of the table in full, as plotly text."""
    token_id = trace.token_ids[position]
    lines = [
        _("{token} at position {position}", token=label(trace.tokens[position], longest=40), position=position),
        _("id {id}, bytes {bytes}", id=token_id, bytes=in_hex(trace, token_id, most=24)),
    ]
    if np.isnan(bits):
        return "<br>".join([*lines, _("the first token: nothing predicted it")])
    return "<br>".join(
        [
            *lines,
            _("probability {probability}, surprisal {bits} bits", probability=number(2.0**-bits), bits=number(bits)),
            _("expected: {bits} bits (entropy)", bits=number(expected)),
            _("rank {rank:.0f} of {size:,} tokens", rank=place, size=trace.config.vocab_size),
        ]
    )


def fact_in_words(trace: Trace, query: int) -> str:
    bits, place = surprisal(trace)[query], rank(trace)[query]
    if np.isnan(bits):
        return _("the first")
    return _("surprisal {bits} bits, rank {rank:.0f}", bits=number(bits), rank=place)
