"""The sliding-window rate limiter."""

import math
from types import SimpleNamespace

from explorer.web.middleware import rate_limits
from explorer.web.middleware.rate_limits import SlidingWindowLimiter


def test_to_look_counts_nothing_and_what_is_refused_to_one_counts_for_none(monkeypatch):
    clock = SimpleNamespace(now=100.0)
    monkeypatch.setattr(rate_limits, "time", SimpleNamespace(monotonic=lambda: clock.now))
    limiter = SlidingWindowLimiter(60.0)
    assert [limiter.seconds_until_free({"a": 1, "b": math.inf}) for _time in range(3)] == [0, 0, 0]
    assert limiter.acquire({"a": 1, "b": 2}) == 0
    clock.now += 20
    assert limiter.seconds_until_free({"a": 1}) == limiter.acquire({"a": 1, "b": 2}) == 40
    assert limiter.acquire({"b": 2}) == 0 and limiter.acquire({"b": 2}) == 40
    clock.now += 40
    assert limiter.acquire({"a": 1, "b": 2}) == 0 and limiter.seconds_until_free({"b": 2}) == 20
