"""Least-recently-used cache of limited size."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from typing import Any


class LRUCache:
    """Thread-safe cache of limited total size that evicts the least recently used entries."""

    def __init__(self, limit: int, size: Callable[[Any], int]):
        self.limit, self.size = limit, size
        self.total = 0
        self._entries: OrderedDict[Hashable, Any] = OrderedDict()
        self._lock = threading.RLock()  # what is let go of may let go of more, on the same thread

    def peek(self, key: Hashable) -> Any:
        """Return the value of `key`, or None; does not count as use."""
        with self._lock:
            return self._entries.get(key)

    def get_cached(self, key: Hashable) -> Any:
        """Return the value of `key`, or None; counts as use."""
        with self._lock:
            if key in self._entries:
                self._entries.move_to_end(key)
            return self._entries.get(key)

    def get(self, key: Hashable, compute: Callable[[], Any]) -> Any:
        """Return the value of `key`, or else `compute()`; two threads that miss at once may both compute."""
        with self._lock:
            if key in self._entries:
                self._entries.move_to_end(key)
                return self._entries[key]
        value = compute()
        with self._lock:
            if key not in self._entries:
                self._entries[key] = value
                self.total += self.size(value)
            while self.total > self.limit and len(self._entries) > 1:
                _key, oldest = self._entries.popitem(last=False)
                self.total -= self.size(oldest)
        return value

    def __iter__(self) -> Iterator[Hashable]:
        with self._lock:
            return iter(list(self._entries))

    def drop(self, condition: Callable[[Hashable], bool]):
        """Evict the keys for which `condition` is true."""
        with self._lock:
            for key in [key for key in list(self._entries) if condition(key)]:
                if key in self._entries:
                    self.total -= self.size(self._entries.pop(key))

    def values(self) -> list[Any]:
        """Return all cached values."""
        with self._lock:
            return list(self._entries.values())
