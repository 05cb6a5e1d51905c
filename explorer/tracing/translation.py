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


def translated(token_ids: Sequence[int], old: Tokenizer, new: Tokenizer, goes_on: bool = False) -> tuple[int, ...]:
    """The same text in another tokenizer's ids, up to where it is no text (part of a character) or too long to keep.

    The end of a text stays one where both have such a token; other special tokens are left out.

    Args:
        goes_on: whether the ids follow others; else what the model expects before a text stands before it here if it
            did there.
    """
    ids = [*new.beginning] if not goes_on and is_begun(token_ids, old) else []
    texts = texts_of(token_ids if goes_on else without_beginning(token_ids, old), old)
    for count, data in enumerate(texts):
        if count:
            if new.end_of_text is None:
                break
            ids.append(new.end_of_text)
        starts = bool(count) or not goes_on
        if starts and old.adds_space:
            data = data.removeprefix(b" ")
        text = beginning(data)
        ids += new.encode(text) if starts else new.encode_continuation(text)
        if text.encode() != data:
            break
    return tuple(ids[:MOST_TOKENS])


def texts_of(token_ids: Sequence[int], tokenizer: Tokenizer) -> list[bytes]:
    """The bytes before, between and after the ends of texts."""
    texts, specials = [b""], {*tokenizer.special_tokens.values()}
    for token_id in token_ids:
        if token_id == tokenizer.end_of_text:
            texts.append(b"")
        elif token_id not in specials:
            texts[-1] += tokenizer.token_bytes(token_id)
    return texts


def beginning(data: bytes) -> str:
    """As much as is text."""
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        return data[: error.start].decode()
