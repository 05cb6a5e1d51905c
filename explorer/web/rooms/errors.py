"""Error responses of rooms."""

from explorer.translations import _


class RoomError(Exception):
    """An error response: HTTP status and message."""

    def __init__(self, status: int, sentence: str):
        super().__init__(sentence)
        self.status, self.sentence = status, sentence


def room_not_found() -> RoomError:
    """Return the error for an unknown room."""
    return RoomError(404, _("There is no such room: it was closed, or its code is another."))


def room_full() -> RoomError:
    """Return the error for a full room."""
    return RoomError(403, _("This room is full."))
