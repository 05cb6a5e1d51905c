"""Sliding-window rate limiter."""

import math
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Hashable, Mapping

MAX_KEYS = 10_000  # the least recently used key is dropped first


class SlidingWindowLimiter:
    """Counts events per key within the last seconds.

    Args:
        seconds: length of the window.
    """

    def __init__(self, seconds: float):
        self.seconds = seconds
        self._times: OrderedDict[Hashable, deque[float]] = OrderedDict()
        self._lock = threading.Lock()

    def seconds_until_free(self, limits: Mapping[Hashable, float]) -> int:
        """Return the seconds until all keys are below their limits, 0 for now.

        Args:
            limits: key -> maximum number of events in the window.
        """
        now = time.monotonic()
        with self._lock:
            waits = [self._wait_s(key, limit, now) for key, limit in limits.items()]
        return max(waits, default=0)

    def acquire(self, limits: Mapping[Hashable, float]) -> int:
        """Return the seconds until all keys are below their limits; if it is 0, count one event for each key."""
        now = time.monotonic()
        with self._lock:
            wait = max((self._wait_s(key, limit, now) for key, limit in limits.items()), default=0)
            if not wait:
                for key in limits:
                    self._recent_times(key, now).append(now)
        return wait

    def _wait_s(self, key: Hashable, limit: float, now: float) -> int:
        times = self._recent_times(key, now)
        return math.ceil(times[len(times) - int(limit)] + self.seconds - now) if len(times) >= limit else 0

    def _recent_times(self, key: Hashable, now: float) -> deque[float]:
        times = self._times.setdefault(key, deque())
        self._times.move_to_end(key)
        while times and times[0] <= now - self.seconds:
            times.popleft()
        while len(self._times) > MAX_KEYS:
            self._times.popitem(last=False)
        return times
