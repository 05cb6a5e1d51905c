"""What a place is that several processes keep bytes in."""

from contextlib import AbstractContextManager
from typing import Protocol

MOST_BYTES = 64 << 20  # of one name
MESSAGES_LAST = 60.0  # seconds in which who listens must have taken one, where nobody carries it to them


class StoreError(Exception):
    """The place cannot be reached, or is full."""


class Messages(Protocol):
    """What is said on a channel from now on."""

    def next(self, seconds: float) -> bytes | None:
        """The next message; None where none comes within so many seconds. StoreError where none can come any more."""


class Store(Protocol):
    """Bytes by their keys, for a while, under one name: stores of another name have keys and bounds of their own.

    What is too much is forgotten, first what would be forgotten first anyway; a value is never half of what was put.
    Every method raises StoreError.

    Attributes:
        place: where it is, in a word for whoever looks after the server, without its password.
    """

    place: str

    def get(self, key: str) -> bytes | None:
        """What was put there; None where nothing was, or it is forgotten."""

    def put(self, key: str, value: bytes, seconds: float):
        """Keep it so long, in place of what was there. More bytes than the store may have are not kept."""

    def drop(self, key: str):
        """Forget it now."""

    def keys(self, prefix: str = "") -> list[str]:
        """Keys that begin so, of what is kept, in alphabetical order."""

    def publish(self, channel: str, message: bytes):
        """Tell all who listen there now, in whatever process."""

    def listen(self, channel: str) -> AbstractContextManager[Messages]:
        """While the block runs, what is published there."""
