"""The byte-pair merges that built a token, and its bytes."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from explorer.explain.notation import quote_token
from explorer.tracing.trace import Trace
from explorer.translations import _, ngettext
from explorer.views import graph_objects as go
from explorer.views.style import MONO, RESIDUAL, SELECTED, figure, label
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
