"""How byte-pair encoding built a token."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from explorer.explain.notation import quoted
from explorer.language import _, ngettext
from explorer.tracing.trace import Trace
from explorer.views import graph_objects as go
from explorer.views.style import MONO, RESIDUAL, SELECTED, figure, label
from model.merges import MergeStep, merge_steps

TINT, PALE = "rgba(0, 158, 115, 0.35)", "rgba(136, 136, 136, 0.12)"  # EMBEDDING and RESIDUAL, text upon them legible


def bytes_of(trace: Trace, token_id: int) -> bytes | None:
    """A token's bytes; None of a special token, or where the tokenizer is unknown."""
    return trace.token_bytes[token_id] if token_id < len(trace.token_bytes) else None


def in_hex(trace: Trace, token_id: int, most: int | None = None) -> str:
    """A token's bytes as pairs of hexadecimal digits, at most so many; "none" where `bytes_of` has none."""
    text = bytes_of(trace, token_id)
    if text is None:
        return _("none")
    return text[:most].hex(" ") + " …" * (most is not None and len(text) > most)


def piece_text(piece: bytes) -> str:
    """Bytes as characters or, where they are not whole ones, as hexadecimal digits."""
    try:
        return piece.decode("utf-8")
    except UnicodeDecodeError:
        return "".join(f"\\x{byte:02x}" for byte in piece)


class Box(NamedTuple):
    """A piece in the picture: in which row, at which byte, its bytes, and the merge that made it if that is its row."""

    row: int
    start: int
    piece: bytes
    made: MergeStep | None


def boxes(first: Sequence[bytes], steps: Sequence[MergeStep]) -> Iterator[Box]:
    """The first pieces of a token, then its pieces after each step."""
    rows = [(first, None), *((step.pieces, step) for step in steps)]
    for row, (pieces, step) in enumerate(rows):
        start = 0
        for place, piece in enumerate(pieces):
            yield Box(row, start, piece, step if step and step.place == place else None)
            start += len(piece)


def built(box: Box) -> str:
    """As in "t + h → th", or the piece alone where no merge made it."""
    whole = label(piece_text(box.piece))
    return f"{' + '.join(label(piece_text(part)) for part in box.made.pair)} → {whole}" if box.made else whole


def steps_to(trace: Trace, token_id: int) -> list[MergeStep]:
    """The merges that make a token; none of one that no merges make."""
    known = trace.merge_rules and bytes_of(trace, token_id)
    text = trace.merge_rules.pieces.get(token_id) if known else None
    steps = merge_steps(text, trace.merge_rules) if text else []
    return steps if steps and steps[-1].pieces == (text,) else []


def tree(trace: Trace, query: int) -> go.Figure:
    """How byte-pair encoding built the token: its bytes, or characters, in a row, and below them its pieces after each
    merge."""
    token_id = trace.token_ids[query]
    steps = steps_to(trace, token_id)
    text = steps[-1].pieces[0] if steps else bytes_of(trace, token_id) or b""
    shown = list(boxes(trace.merge_rules.begun(text) if steps else (text,) * bool(text), steps))
    rows = [box.row for box in shown]
    first = _("characters") if steps and trace.merge_rules.of_characters else _("bytes")
    ids = [token_id if box.piece == text else trace.merge_rules.ids.get(box.piece) for box in shown]
    hover = [
        _("{piece}<br>bytes {bytes}, no token by itself", piece=built(box), bytes=box.piece.hex(" "))
        if known is None
        else _("{piece}<br>id {id}, bytes {bytes}", piece=built(box), id=known, bytes=box.piece.hex(" "))
        for box, known in zip(shown, ids, strict=True)
    ]
    fig = figure(
        [
            go.Bar(
                orientation="h",
                base=[box.start for box in shown],
                x=[len(box.piece) for box in shown],
                y=rows,
                marker={
                    "color": [TINT if box.made else PALE for box in shown],
                    "line": {"color": [SELECTED if box.piece == text else RESIDUAL for box in shown], "width": 1},
                },
                text=hover,
                textposition="none",
                hovertemplate="%{text}<extra></extra>",
            ),
            go.Scatter(  # not the bars' own texts, whose colours would not follow the theme
                x=[box.start + len(box.piece) / 2 for box in shown],
                y=rows,
                text=[label(piece_text(box.piece)) for box in shown],
                mode="text",
                textfont={"family": MONO, "size": 13},
                hoverinfo="skip",
            ),
        ],
        alt=in_words(trace, query, steps),
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
        bargap=0.25,
        showlegend=False,
    )
    if not steps:
        said = _("No merge: the tokenizer takes it whole.")
        if len(text) == 1:
            said = _("A single byte: no merge is needed.")
        if not text:
            said = _("A special token, or of a tokenizer not known here.")
        fig.add_annotation(text=said, x=0.5, y=0.4, xref="paper", yref="paper", showarrow=False)
    return fig


def in_words(trace: Trace, query: int, steps: Sequence[MergeStep]) -> str:
    token = quoted(trace.tokens[query])
    if not steps:
        return _("No merge built {token}.", token=token)
    each = []
    for step in steps:
        pair = " + ".join(quoted(piece_text(part)) for part in step.pair)
        each.append(_("{pair} (id {id})", pair=pair, id=step.token_id))
    return ngettext(
        "{token} was built by {count} merge: {each}.",
        "{token} was built by {count} merges: {each}.",
        len(steps),
        token=token,
        each="; ".join(each),
    )
