"""Creation of stores by address."""

from urllib.parse import urlsplit

from explorer.web.stores.memory_store import MemoryStore
from explorer.web.stores.redis_store import RedisStore
from explorer.web.stores.sqlite_store import SqliteStore
from explorer.web.stores.store import MAX_BYTES, Store

FILE, REDIS = "file:", ("redis://", "rediss://")


def check_address(address: str):
    """Raise ValueError if a store's address is invalid."""
    location = address.removeprefix(FILE) if address.startswith(FILE) else urlsplit(address).hostname
    if not location or not address.startswith((FILE, *REDIS)):
        raise ValueError(f"must be redis://host, rediss://host or file:PATH, got {address!r}")


def open_store(address: str, name: str, max_bytes: int = MAX_BYTES) -> Store:
    """Open the store at an address.

    Args:
        address: redis://host or rediss://host; file:PATH for the processes of one machine; "" for this process only.
        name: of the store.

    Raises:
        StoreError: there can be no store at this address.
        ValueError: the address is invalid.
    """
    if not address:
        return MemoryStore(max_bytes)
    check_address(address)
    if address.startswith(FILE):
        return SqliteStore(address.removeprefix(FILE), name, max_bytes)
    return RedisStore(address, name, max_bytes)
