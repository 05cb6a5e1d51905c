"""The state that a teacher shows to a class, as anybody may send it."""

from collections.abc import Mapping
from typing import Any

from explorer.language import _
from explorer.web.rooms.refusals import Refusal

# What stays each student's own: in which language they read, what they reply and guess.
OWN = ("lang", "turn", "version", "move", "own", "reply", "guess")
MOST_NAMES, MOST_NAME = 120, 40


def state_in(given: Any) -> dict[str, Any]:
    """What of it others follow: texts, numbers and lists of such by their names; Refusal where it is no state."""
    if not isinstance(given, Mapping) or not given.get("checkpoint") or len(given) > MOST_NAMES:
        raise Refusal(422, _("What is shown to a class is the page’s state."))
    state = {name: value for name, value in given.items() if name not in OWN}
    if not all(len(name) <= MOST_NAME and is_word(value) for name, value in state.items()):
        raise Refusal(422, _("What is shown to a class is the page’s state."))
    return state


def is_word(value: Any) -> bool:
    return isinstance(value, str | int | float) or (
        isinstance(value, list) and all(isinstance(one, int) for one in value)
    )
