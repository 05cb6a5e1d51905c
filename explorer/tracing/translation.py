"""A text as a model's token ids, and in another tokenizer's."""

from collections.abc import Sequence

from explorer.state.run import MOST_TOKENS
from model.tokenizer import Tokenizer


def is_begun(token_ids: Sequence[int], tokenizer: Tokenizer) -> bool:
    """Whether ids begin with what their model expects before every text, of many models nothing."""
    return tuple(token_ids[: len(tokenizer.beginning)]) == tokenizer.beginning


def without_beginning(token_ids: Sequence[int], tokenizer: Tokenizer) -> tuple[int, ...]:
    """The ids of the text itself."""
    return tuple(token_ids[len(tokenizer.beginning) :] if is_begun(token_ids, tokenizer) else token_ids)


def translated(
    token_ids: Sequence[int], old: Tokenizer, new: Tokenizer, goes_on: bool = False, before: Sequence[int] = ()
) -> tuple[int, ...]:
    """The same text in another tokenizer's ids, up to where it is no text (part of a character) or too long to keep.

    The end of a text stays one where both have such a token; other special tokens are left out.

    Args:
        goes_on: whether the ids follow others; else what the model expects before a text stands before it here if it
            did there.
        before: the ids that they follow.
    """
    ids = [*new.beginning] if not goes_on and is_begun(token_ids, old) else []
    parts = split_at_ends(token_ids if goes_on else without_beginning(token_ids, old), old)
    for count, part in enumerate(parts):
        if count:
            if new.end_of_text is None:
                break
            ids.append(new.end_of_text)
        starts = bool(count) or not goes_on
        text, is_whole = read_text(part, old, None if starts else before)
        ids += new.encode(text) if starts else new.encode_continuation(text)
        if not is_whole:
            break
    return tuple(ids[:MOST_TOKENS])


def split_at_ends(token_ids: Sequence[int], tokenizer: Tokenizer) -> list[list[int]]:
    """Return the ids before, between and after the ends of texts, without special tokens."""
    parts, specials = [[]], {*tokenizer.special_tokens.values()}
    for token_id in token_ids:
        if token_id == tokenizer.end_of_text:
            parts.append([])
        elif token_id not in specials:
            parts[-1].append(token_id)
    return parts


def read_text(token_ids: Sequence[int], tokenizer: Tokenizer, before: Sequence[int] | None) -> tuple[str, bool]:
    """Return as much of the ids as is text, and whether that is all.

    Args:
        before: ids that they follow; None of those that begin a text.
    """
    data = b"".join(map(tokenizer.token_bytes, token_ids))
    try:
        data.decode()
    except UnicodeDecodeError as error:
        text = data[: error.start].decode()
        return text.removeprefix(" " if before is None and tokenizer.adds_space else ""), False
    if before is None:
        return tokenizer.decode(token_ids), True
    return tokenizer.decode_continuation(token_ids, before), True
