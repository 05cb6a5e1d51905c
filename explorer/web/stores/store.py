"""Protocol of stores shared by several processes."""

from contextlib import AbstractContextManager
from typing import Protocol

MAX_BYTES = 64 << 20  # of one name
MESSAGE_TTL_S = 60.0  # a listener must poll within this time


class StoreError(Exception):
    """The store cannot be reached, or is full."""


class Messages(Protocol):
    """Messages published on a channel from now on."""

    def next(self, seconds: float) -> bytes | None:
        """Return the next message; None if there is none within `seconds`.

        Raises:
            StoreError: the channel is lost.
        """


class Store(Protocol):
    """Bytes by key with an expiry time, in a named store; other names have keys and bounds of their own.

    When there are too many bytes, the entries that would expire first are deleted; values are never truncated. Every
    method raises StoreError.

    Attributes:
        location: of the store, for the server's administrator, without its password.
    """

    location: str

    def get(self, key: str) -> bytes | None:
        """Return the value of a key; None if there is none, or it has expired."""

    def put(self, key: str, value: bytes, seconds: float):
        """Store a value for `seconds`, replacing an earlier one; one that exceeds the store's bound is not stored."""

    def drop(self, key: str):
        """Delete a key."""

    def keys(self, prefix: str = "") -> list[str]:
        """Return the unexpired keys with a prefix in alphabetical order."""

    def publish(self, channel: str, message: bytes):
        """Send a message to all current listeners of a channel, in any process."""

    def listen(self, channel: str) -> AbstractContextManager[Messages]:
        """Subscribe to a channel during the block."""
