"""A text in another tokenizer's ids."""

from collections.abc import Sequence

from explorer.state.run import MOST_TOKENS
from model.tokenizer import Tokenizer


def translated(token_ids: Sequence[int], old: Tokenizer, new: Tokenizer) -> tuple[int, ...]:
    """The same text in another tokenizer's ids, up to where it is no text (part of a character) or too long to keep."""
    ids, piece = [], b""
    for token_id in (*token_ids, None):
        if token_id not in (None, old.end_of_text):
            piece += old.token_bytes(token_id)
            continue
        text = beginning(piece)
        ids += new.encode(text)
        if token_id is None or text.encode() != piece:
            break
        ids, piece = [*ids, new.end_of_text], b""
    return tuple(ids[:MOST_TOKENS])


def beginning(data: bytes) -> str:
    """As much as is text."""
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        return data[: error.start].decode()
