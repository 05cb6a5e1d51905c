"""The store at an address."""

from urllib.parse import urlsplit

from explorer.web.shared.in_a_file import InAFile
from explorer.web.shared.in_memory import InMemory
from explorer.web.shared.on_redis import OnRedis
from explorer.web.shared.store import MOST_BYTES, Store

FILE, REDIS = "file:", ("redis://", "rediss://")


def check_address(address: str):
    """ValueError where nothing can be there."""
    place = address.removeprefix(FILE) if address.startswith(FILE) else urlsplit(address).hostname
    if not place or not address.startswith((FILE, *REDIS)):
        raise ValueError(f"must be redis://host, rediss://host or file:PATH, got {address!r}")


def store_at(address: str, name: str, most_bytes: int = MOST_BYTES) -> Store:
    """The store of a name.

    Args:
        address: redis://host or rediss://host; file:PATH for the processes of one machine; "" for one process alone.

    Raises:
        StoreError: there can be none.
        ValueError: that is no address.
    """
    if not address:
        return InMemory(most_bytes)
    check_address(address)
    if address.startswith(FILE):
        return InAFile(address.removeprefix(FILE), name, most_bytes)
    return OnRedis(address, name, most_bytes)
