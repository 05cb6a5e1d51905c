"""Notices to the user: what was not as asked for, in a sentence."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from explorer.web.error_messages import user_message

_notices: ContextVar[list[str] | None] = ContextVar("notices", default=None)


def warn(error: Exception):
    """Add an error's message to the notices that are sent with the answer."""
    if (notices := _notices.get()) is not None:
        notices.append(user_message(error))


@contextmanager
def collect_notices() -> Iterator[list[str]]:
    """Collect the notices of the block, which are to be sent."""
    notices: list[str] = []
    before = _notices.set(notices)
    try:
        yield notices
    finally:
        _notices.reset(before)
