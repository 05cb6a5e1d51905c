"""How often somebody did something lately."""

import math
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Hashable, Mapping

MOST_KNOWN = 10_000  # who did it; of whom did it longest ago nothing is known any more


class Often:
    """Counts by who did it, in the last seconds.

    Args:
        seconds: in which it is counted.
    """

    def __init__(self, seconds: float):
        self.seconds = seconds
        self._done: OrderedDict[Hashable, deque[float]] = OrderedDict()
        self._lock = threading.Lock()

    def wait(self, limits: Mapping[Hashable, float]) -> int:
        """Seconds until somebody may do it again, 0 for now; who -> how often they may."""
        now = time.monotonic()
        with self._lock:
            waits = [self._until_free(who, most, now) for who, most in limits.items()]
        return max(waits, default=0)

    def count(self, limits: Mapping[Hashable, float]) -> int:
        """The same, and where it is now, it is done."""
        now = time.monotonic()
        with self._lock:
            wait = max((self._until_free(who, most, now) for who, most in limits.items()), default=0)
            if not wait:
                for who in limits:
                    self._recent(who, now).append(now)
        return wait

    def _until_free(self, who: Hashable, most: float, now: float) -> int:
        times = self._recent(who, now)
        return math.ceil(times[len(times) - int(most)] + self.seconds - now) if len(times) >= most else 0

    def _recent(self, who: Hashable, now: float) -> deque[float]:
        times = self._done.setdefault(who, deque())
        self._done.move_to_end(who)
        while times and times[0] <= now - self.seconds:
            times.popleft()
        while len(self._done) > MOST_KNOWN:
            self._done.popitem(last=False)
        return times
