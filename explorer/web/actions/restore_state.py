"""Opening a saved view."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from explorer.state.errors import UserError
from explorer.state.generation_settings import GenerationSettings
from explorer.state.page_state import PageState
from explorer.state.selection import Selection
from explorer.translations import _
from explorer.web.actions.run_factory import RunFactory

MAX_FIELDS, MAX_CHARACTERS = 200, 8000


def restore_saved_state(
    run_factory: RunFactory, state: Mapping[str, Any], command: Mapping[str, Any]
) -> tuple[PageState, GenerationSettings]:
    """Return the state and settings of a saved view, outside of any lesson.

    Args:
        state: the page's.
        command: "words", name -> value as in a URL; unvalidated.

    Raises:
        UserError, CheckpointError: it is no saved view, or what it names is not available.
    """
    fields = command.get("words")
    if not isinstance(fields, Mapping) or len(fields) > MAX_FIELDS or not all(map(_is_short_text, fields.items())):
        raise UserError(_("a saved view must have the fields of a link, got {got!r:.80}", got=fields))
    page_state = run_factory.state_from_query(
        {"checkpoint": "", "view": Selection.view} | dict(fields) | {"turn": state.get("turn")}
    )
    return replace(
        page_state, selection=replace(page_state.selection, lesson="", step=0, reply="")
    ), GenerationSettings.parse(fields)


def _is_short_text(item: tuple[Any, Any]) -> bool:
    return all(isinstance(text, str) and len(text) <= MAX_CHARACTERS for text in item)
