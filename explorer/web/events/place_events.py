"""Going to a saved place."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from explorer.language import _
from explorer.state.errors import UserError
from explorer.state.page_state import PageState
from explorer.state.selection import Selection
from explorer.state.settings import GenerationSettings
from explorer.web.events.opening import Opening

MOST_WORDS, MOST_CHARACTERS = 200, 8000


def gone_to_place(
    opening: Opening, state: Mapping[str, Any], move: Mapping[str, Any]
) -> tuple[PageState, GenerationSettings]:
    """What a saved place asks, outside of any lesson.

    Args:
        state: the page's.
        move: "words", name -> value as in an address; anything, as anybody may send it.

    Raises:
        UserError, CheckpointError: it is no place, or what it asks for is not there.
    """
    words = move.get("words")
    if not isinstance(words, Mapping) or len(words) > MOST_WORDS or not all(map(_is_word, words.items())):
        raise UserError(_("a place has the words of an address, got {got!r:.80}", got=words))
    asked = opening.restored({"checkpoint": "", "view": Selection.view} | dict(words) | {"turn": state.get("turn")})
    return replace(asked, selection=replace(asked.selection, lesson="", step=0, reply="")), GenerationSettings.parse(
        words
    )


def _is_word(item: tuple[Any, Any]) -> bool:
    return all(isinstance(text, str) and len(text) <= MOST_CHARACTERS for text in item)
