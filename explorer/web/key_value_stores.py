"""Stores of rooms, in this process's memory or in Redis, and of the cached answers that processes share in Redis."""

import logging
import math
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

LOG = logging.getLogger(__name__)
TIMEOUT_S = 0.5  # seconds for an answer of Redis; whoever waits for this waits for a page
RETRY_AFTER_S = 5.0  # seconds until one that did not answer is asked again: each question may wait for an answer


class StoreError(Exception):
    """The store cannot be reached."""


def check_store_address(address: str):
    """Raise ValueError if a store's address is invalid."""
    if not address.startswith(("redis://", "rediss://")) or not urlsplit(address).hostname:
        raise ValueError(f"give redis://HOST or rediss://HOST (docs/deploy.md), not {address!r}")


class MemoryRooms:
    """Rooms in this process's memory: of each code, bytes by field until the room expires."""

    def __init__(self):
        self._rooms: dict[str, tuple[float, dict[str, bytes]]] = {}  # code -> until when, and the fields
        self._lock = threading.Lock()

    def create_room(self, code: str, fields: Mapping[str, bytes], seconds: float):
        """Create a room that expires after `seconds`."""
        with self._lock:
            self._rooms[code] = time.monotonic() + seconds, dict(fields)

    def read_room(self, code: str) -> dict[str, bytes]:
        """Return a room's fields; none if there is no such room, or it has expired."""
        with self._lock:
            return dict(self._fields(code))

    def write_field(self, code: str, field: str, value: bytes | None):
        """Set a field of a room; None deletes it. Do nothing if there is no such room."""
        with self._lock:
            fields = self._fields(code)
            fields.pop(field, None)
            if value is not None:
                fields[field] = value

    def renew_room(self, code: str, seconds: float):
        """Let a room expire after `seconds` from now."""
        with self._lock:
            if fields := self._fields(code):
                self._rooms[code] = time.monotonic() + seconds, fields

    def delete_room(self, code: str):
        """Delete a room."""
        with self._lock:
            self._rooms.pop(code, None)

    def count_rooms(self) -> int:
        """Return the number of rooms."""
        with self._lock:
            return sum(bool(self._fields(code)) for code in list(self._rooms))

    def _fields(self, code: str) -> dict[str, bytes]:
        until, fields = self._rooms.get(code, (0.0, {}))
        if until > time.monotonic():
            return fields
        self._rooms.pop(code, None)
        return {}


ANSWERS, ROOMS = "explorer:answer:", "explorer:room:"  # beginnings of keys
# In one step, as a room that is closed meanwhile must not come back without its key and an end.
WRITE_SCRIPT = "if redis.call('EXISTS', KEYS[1]) == 1 then redis.call('HSET', KEYS[1], ARGV[1], ARGV[2]) end"


class RedisStore:
    """Cached answers and rooms in Redis, or a compatible server, whose `maxmemory` bounds them (docs/deploy.md).

    Every method raises StoreError. Those of rooms are those of `MemoryRooms`.

    Args:
        address: redis://[:password@]host[:port][/number], or rediss:// for an encrypted connection.

    Attributes:
        location: of the store, for the server's administrator, without its password.

    Raises:
        StoreError: the `redis` package is not installed.
        ValueError: the address is invalid.
    """

    def __init__(self, address: str):
        check_store_address(address)
        try:
            import redis
            from redis.backoff import NoBackoff
            from redis.retry import Retry
        except ImportError:
            raise StoreError("--store redis://… needs the Python package redis: pip install redis") from None
        self._errors_of_redis = redis.RedisError
        parts = urlsplit(address)
        self.location = f"{parts.scheme}://{parts.hostname}:{parts.port or 6379}"
        waits = {"socket_timeout": TIMEOUT_S, "socket_connect_timeout": TIMEOUT_S, "retry": Retry(NoBackoff(), 1)}
        self._redis = redis.Redis.from_url(address, **waits)
        self._write = self._redis.register_script(WRITE_SCRIPT)

    def get(self, key: str) -> bytes | None:
        """Return the cached answer of a key; None if there is none, or it has expired."""
        with self._errors():
            return self._redis.get(ANSWERS + key)

    def put(self, key: str, value: bytes, seconds: float):
        """Store an answer for `seconds`, replacing an earlier one."""
        with self._errors():
            self._redis.set(ANSWERS + key, value, px=math.ceil(1000 * seconds))

    def create_room(self, code: str, fields: Mapping[str, bytes], seconds: float):
        with self._errors(), self._redis.pipeline() as steps:
            steps.hset(ROOMS + code, mapping=fields).pexpire(ROOMS + code, math.ceil(1000 * seconds)).execute()

    def read_room(self, code: str) -> dict[str, bytes]:
        with self._errors():
            return {field.decode(): value for field, value in self._redis.hgetall(ROOMS + code).items()}

    def write_field(self, code: str, field: str, value: bytes | None):
        with self._errors():
            if value is None:
                self._redis.hdel(ROOMS + code, field)
            else:
                self._write(keys=[ROOMS + code], args=[field, value])

    def renew_room(self, code: str, seconds: float):
        with self._errors():
            self._redis.pexpire(ROOMS + code, math.ceil(1000 * seconds))

    def delete_room(self, code: str):
        with self._errors():
            self._redis.delete(ROOMS + code)

    def count_rooms(self) -> int:
        with self._errors():
            return sum(1 for _key in self._redis.scan_iter(f"{ROOMS}*", count=1000))

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except (self._errors_of_redis, OSError) as error:
            raise StoreError(f"{self.location}: {error}") from error


class FaultTolerantStore:
    """Cached answers that may be unavailable: then there are none, which is logged once.

    Args:
        store: called as long as it answers, and again `RETRY_AFTER_S` later.
    """

    def __init__(self, store: RedisStore):
        self.store, self.location = store, store.location
        self._retry_at, self._lock = 0.0, threading.Lock()

    @property
    def is_available(self) -> bool:
        """True unless the last call failed."""
        return self._retry_at == 0

    def get(self, key: str) -> bytes | None:
        return self._call(self.store.get, key)

    def put(self, key: str, value: bytes, seconds: float):
        self._call(self.store.put, key, value, seconds)

    def _call(self, method: Callable[..., Any], *args: Any) -> Any:
        if time.monotonic() < self._retry_at:
            return None
        try:
            answer = method(*args)
        except StoreError as error:
            self._set_available(False, error)
            return None
        if not self.is_available:
            self._set_available(True)
        return answer

    def _set_available(self, is_available: bool, error: StoreError | None = None):
        with self._lock:
            was_available, self._retry_at = self.is_available, 0.0 if is_available else time.monotonic() + RETRY_AFTER_S
        if was_available and not is_available:
            LOG.warning("the shared store does not respond, continuing without it: %s", error)
        elif is_available and not was_available:
            LOG.info("the shared store responds again")
