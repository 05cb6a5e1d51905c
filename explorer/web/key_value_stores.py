"""Stores of bytes: in this process's memory, or in Redis, which several processes share.

Cached answers and rooms lie in them. Both have the methods of `KeyValueStore`; `open_store` chooses by address.
"""

import logging
import math
import queue
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Protocol
from urllib.parse import urlsplit

LOG = logging.getLogger(__name__)
MAX_BYTES = 64 << 20  # of one name
TIMEOUT_S = 0.5  # seconds for an answer of Redis; whoever waits for this waits for a page
RETRY_AFTER_S = 5.0  # seconds until one that did not answer is asked again: each question may wait for an answer
NextMessage = Callable[[float], bytes | None]


class StoreError(Exception):
    """The store cannot be reached."""


class KeyValueStore(Protocol):
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

    def listen(self, channel: str) -> AbstractContextManager[NextMessage]:
        """Subscribe to a channel during the block.

        Yields:
            function that returns the next message; None if there is none within so many seconds.
        """


def check_store_address(address: str):
    """Raise ValueError if a store's address is invalid."""
    if not address.startswith(("redis://", "rediss://")) or not urlsplit(address).hostname:
        raise ValueError(f"give redis://HOST or rediss://HOST (docs/deploy.md), not {address!r}")


def open_store(address: str, name: str, max_bytes: int = MAX_BYTES) -> KeyValueStore:
    """Open the store at an address.

    Args:
        address: redis://host or rediss://host; "" for this process only.
        name: of the store.
        max_bytes: of all values of that name.

    Raises:
        StoreError: there can be no store at this address.
        ValueError: the address is invalid.
    """
    return RedisStore(address, name, max_bytes) if address else MemoryStore(max_bytes)


class MemoryStore:
    """Store in this process's memory, see `KeyValueStore`.

    Args:
        max_bytes: of all values.
    """

    location = "this process"

    def __init__(self, max_bytes: int = MAX_BYTES):
        self.max_bytes = max_bytes
        self._entries: dict[str, tuple[float, bytes]] = {}  # key -> until when, and the value
        self._listeners: dict[str, list[queue.SimpleQueue]] = defaultdict(list)
        self._lock = threading.Lock()

    def get(self, key: str) -> bytes | None:
        with self._lock:
            until, value = self._entries.get(key, (0.0, b""))
            return value if until > time.monotonic() else None

    def put(self, key: str, value: bytes, seconds: float):
        now = time.monotonic()
        with self._lock:
            self._entries.pop(key, None)
            if len(value) <= self.max_bytes:
                self._entries[key] = now + seconds, value
            total = sum(len(value) for _until, value in self._entries.values())
            for old_key, (until, old_value) in sorted(self._entries.items(), key=lambda item: item[1][0]):
                if until > now and total <= self.max_bytes:
                    break
                del self._entries[old_key]
                total -= len(old_value)

    def drop(self, key: str):
        with self._lock:
            self._entries.pop(key, None)

    def keys(self, prefix: str = "") -> list[str]:
        now = time.monotonic()
        with self._lock:
            return sorted(
                key for key, (until, _value) in self._entries.items() if key.startswith(prefix) and until > now
            )

    def publish(self, channel: str, message: bytes):
        with self._lock:
            for listener in self._listeners.get(channel, ()):
                listener.put(message)

    @contextmanager
    def listen(self, channel: str) -> Iterator[NextMessage]:
        messages = queue.SimpleQueue()

        def next_message(seconds: float) -> bytes | None:
            try:
                return messages.get(timeout=seconds)
            except queue.Empty:
                return None

        with self._lock:
            self._listeners[channel].append(messages)
        try:
            yield next_message
        finally:
            with self._lock:
                self._listeners[channel].remove(messages)


# Keys and sizes by when they are forgotten, beside the values: so a bound in bytes is one of this store alone, whatever
# else the server has. All of it in one step, as others put at the same time.
PUT_SCRIPT = """
local ends, sizes, key, value = KEYS[1], KEYS[2], ARGV[1], ARGV[2]
local milliseconds, most, prefix = tonumber(ARGV[3]), tonumber(ARGV[4]), ARGV[5]
local time = redis.call('TIME')
local now = 1000 * time[1] + math.floor(time[2] / 1000)
local function forget(keys)
  for _, each in ipairs(keys) do
    redis.call('DEL', prefix .. each)
    redis.call('ZREM', ends, each)
    local size = redis.call('HGET', sizes, each)
    if size and size ~= '0' then redis.call('HINCRBY', sizes, '', '-' .. size) end
    redis.call('HDEL', sizes, each)
  end
end
forget({key})
if milliseconds <= 0 then return end
redis.call('SET', prefix .. key, value, 'PX', milliseconds)
redis.call('ZADD', ends, now + milliseconds, key)
redis.call('HSET', sizes, key, #value)
redis.call('HINCRBY', sizes, '', #value)
forget(redis.call('ZRANGEBYSCORE', ends, '-inf', now))
while tonumber(redis.call('HGET', sizes, '')) > most do
  forget(redis.call('ZRANGE', ends, 0, 0))
end
for _, each in ipairs(KEYS) do
  if redis.call('PTTL', each) < milliseconds then redis.call('PEXPIRE', each, milliseconds) end
end
"""


class RedisStore:
    """Store in Redis, or a compatible server, see `KeyValueStore`.

    Args:
        address: redis://[:password@]host[:port][/number], or rediss:// for an encrypted connection.
        name: of the store, as several may be on one server.
        max_bytes: of all values of that name.

    Raises:
        StoreError: the `redis` package is not installed.
        ValueError: the address is invalid.
    """

    def __init__(self, address: str, name: str, max_bytes: int = MAX_BYTES):
        check_store_address(address)
        try:
            import redis
            from redis.backoff import NoBackoff
            from redis.retry import Retry
        except ImportError:
            raise StoreError("--store redis://… needs the Python package redis: pip install redis") from None
        self.max_bytes, self._errors_of_redis = max_bytes, redis.RedisError
        parts = urlsplit(address)
        self.location = f"{parts.scheme}://{parts.hostname}:{parts.port or 6379}"
        waits = {"socket_timeout": TIMEOUT_S, "socket_connect_timeout": TIMEOUT_S, "retry": Retry(NoBackoff(), 1)}
        self._redis = redis.Redis.from_url(address, **waits)
        self._prefix = f"explorer:{{{name}}}:"  # in braces, so that a cluster keeps all of it at one place
        self._ends, self._sizes = f"{self._prefix}ends", f"{self._prefix}sizes"
        self._put = self._redis.register_script(PUT_SCRIPT)

    def get(self, key: str) -> bytes | None:
        with self._errors():
            return self._redis.get(self._value_key(key))

    def put(self, key: str, value: bytes, seconds: float):
        if len(value) > self.max_bytes:
            return self.drop(key)
        with self._errors():
            args = [key, value, math.ceil(1000 * seconds), self.max_bytes, self._value_key("")]
            self._put(keys=[self._ends, self._sizes], args=args)

    def drop(self, key: str):
        self.put(key, b"", 0)

    def keys(self, prefix: str = "") -> list[str]:
        with self._errors():
            seconds, microseconds = self._redis.time()
            encoded_keys = self._redis.zrangebyscore(self._ends, f"({1000 * seconds + microseconds // 1000}", "+inf")
        return sorted(key for key in (encoded_key.decode() for encoded_key in encoded_keys) if key.startswith(prefix))

    def publish(self, channel: str, message: bytes):
        with self._errors():
            self._redis.publish(self._channel_name(channel), message)

    @contextmanager
    def listen(self, channel: str) -> Iterator[NextMessage]:
        subscription = self._redis.pubsub()

        def next_message(seconds: float) -> bytes | None:
            end = time.monotonic() + seconds
            with self._errors():
                while True:
                    message = subscription.get_message(timeout=max(0.0, end - time.monotonic()))
                    if message and message["type"] == "message":
                        return message["data"]
                    if time.monotonic() >= end:
                        return None

        try:
            with self._errors():
                subscription.subscribe(self._channel_name(channel))
                subscription.get_message(timeout=TIMEOUT_S)  # that it listens: what is published from now on comes
            yield next_message
        finally:
            subscription.close()

    def _value_key(self, key: str) -> str:
        return f"{self._prefix}value:{key}"

    def _channel_name(self, channel: str) -> str:
        return f"{self._prefix}channel:{channel}"

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except (self._errors_of_redis, OSError) as error:
            raise StoreError(f"{self.location}: {error}") from error


class FaultTolerantStore:
    """Store that may be unavailable: it then returns nothing, which is logged once, and the caller continues without.

    Args:
        store: called as long as it answers, and again `RETRY_AFTER_S` later.
    """

    def __init__(self, store: KeyValueStore):
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
