"""Validation of the page's state that students follow."""

from collections.abc import Mapping
from typing import Any

from explorer.translations import _
from explorer.web.rooms.errors import RoomError

# What stays each student's own: in which language they read, what they reply and guess.
STUDENT_FIELDS = ("lang", "turn", "version", "move", "own", "reply", "guess")
MAX_FIELDS, MAX_NAME_CHARACTERS = 120, 40


def parse_teacher_state(payload: Any) -> dict[str, Any]:
    """Return the page's state that students follow: texts, numbers and lists of integers by name.

    Raises:
        RoomError: it is no state.
    """
    if not isinstance(payload, Mapping) or not payload.get("checkpoint") or len(payload) > MAX_FIELDS:
        raise RoomError(422, _("“state” must be the state of the page."))
    state = {name: value for name, value in payload.items() if name not in STUDENT_FIELDS}
    if not all(len(name) <= MAX_NAME_CHARACTERS and is_simple_value(value) for name, value in state.items()):
        raise RoomError(422, _("“state” must be the state of the page."))
    return state


def is_simple_value(value: Any) -> bool:
    """Return whether a value is text, a number or a list of integers."""
    return isinstance(value, str | int | float) or (
        isinstance(value, list) and all(isinstance(one, int) for one in value)
    )
