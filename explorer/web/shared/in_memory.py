"""A store of one process."""

import queue
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager

from explorer.web.shared.store import MOST_BYTES, Messages


class InMemory:
    """See `Store`.

    Args:
        most_bytes: of all values.
    """

    place = "this process"

    def __init__(self, most_bytes: int = MOST_BYTES):
        self.most_bytes = most_bytes
        self._kept: dict[str, tuple[float, bytes]] = {}  # key -> until when, and the value
        self._listening: dict[str, list[queue.SimpleQueue]] = defaultdict(list)
        self._lock = threading.Lock()

    def get(self, key: str) -> bytes | None:
        with self._lock:
            until, value = self._kept.get(key, (0.0, b""))
            return value if until > time.monotonic() else None

    def put(self, key: str, value: bytes, seconds: float):
        now = time.monotonic()
        with self._lock:
            self._kept.pop(key, None)
            if len(value) <= self.most_bytes:
                self._kept[key] = now + seconds, value
            total = sum(len(value) for _until, value in self._kept.values())
            for old, (until, kept) in sorted(self._kept.items(), key=lambda each: each[1][0]):
                if until > now and total <= self.most_bytes:
                    break
                del self._kept[old]
                total -= len(kept)

    def drop(self, key: str):
        with self._lock:
            self._kept.pop(key, None)

    def keys(self, prefix: str = "") -> list[str]:
        now = time.monotonic()
        with self._lock:
            return sorted(key for key, (until, _value) in self._kept.items() if key.startswith(prefix) and until > now)

    def publish(self, channel: str, message: bytes):
        with self._lock:
            for each in self._listening.get(channel, ()):
                each.put(message)

    @contextmanager
    def listen(self, channel: str) -> Iterator[Messages]:
        messages = queue.SimpleQueue()
        with self._lock:
            self._listening[channel].append(messages)
        try:
            yield _Queued(messages)
        finally:
            with self._lock:
                self._listening[channel].remove(messages)
                if not self._listening[channel]:
                    del self._listening[channel]


class _Queued:
    def __init__(self, messages: queue.SimpleQueue):
        self.messages = messages

    def next(self, seconds: float) -> bytes | None:
        try:
            return self.messages.get(timeout=seconds)
        except queue.Empty:
            return None
