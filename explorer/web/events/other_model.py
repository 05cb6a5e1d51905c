"""The same text, read by another model."""

from collections.abc import Sequence
from dataclasses import replace

from explorer.state.errors import UserError
from explorer.state.page_state import PageState
from explorer.state.run import MOST_TOKENS
from explorer.web.events.opening import Opening
from model.tokenizer import Tokenizer


def read_by(opening: Opening, checkpoint: str, prompt: str, asked: PageState, own: PageState | None) -> PageState:
    """The same asked of another model: with the continuations it has of the same text from before, or else with what
    is written now.

    Args:
        prompt: the text of the prompt.
        own: what the other model's run and tree were, when it was last here.
    """
    if own is not None and opening.runs.text(own.run)[0] == opening.runs.text(asked.run)[0]:
        run = replace(own.run, edits=asked.run.edits)
        return replace(asked, run=run, branches=own.branches, began=own.began)
    (_, old), (_, new) = (opening.runs.model(name) for name in (asked.run.checkpoint, checkpoint))
    if old.vocabulary == new.vocabulary:  # the same ids, even where the tokenizer would cut the text otherwise
        run = replace(asked.run, checkpoint=checkpoint)
    else:
        run = opening.run_of(checkpoint, prompt)
        run = replace(run, generated=translated(asked.run.generated, old, new), edits=asked.run.edits)
    return replace(asked, run=run, branches=(), began=len(run.generated))


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


def own_continuations(checkpoint: str, own: object) -> PageState | None:
    """What the browser kept of a model's run and tree; None where nothing was written, or it makes no sense."""
    if not isinstance(own, dict):
        return None
    try:
        asked = PageState.parse(own | {"checkpoint": checkpoint, "edits": ""})
    except UserError:
        return None
    return asked if asked.run.generated or asked.branches else None
