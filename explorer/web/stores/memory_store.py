"""Store in this process's memory."""

import queue
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager

from explorer.web.stores.store import MAX_BYTES, Messages


class MemoryStore:
    """Store in this process's memory, see `Store`.

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
    def listen(self, channel: str) -> Iterator[Messages]:
        messages = queue.SimpleQueue()
        with self._lock:
            self._listeners[channel].append(messages)
        try:
            yield _QueueMessages(messages)
        finally:
            with self._lock:
                self._listeners[channel].remove(messages)
                if not self._listeners[channel]:
                    del self._listeners[channel]


class _QueueMessages:
    def __init__(self, messages: queue.SimpleQueue):
        self.messages = messages

    def next(self, seconds: float) -> bytes | None:
        try:
            return self.messages.get(timeout=seconds)
        except queue.Empty:
            return None
