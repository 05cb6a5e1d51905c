import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from explorer.tracing.lru_cache import LRUCache


@pytest.fixture
def text_cache() -> LRUCache:
    """At most 10 characters of text."""
    return LRUCache(10, size=len)


def recording_compute(calls: list, value):
    def compute():
        calls.append(value)
        return value

    return compute


def test_cached_value_is_not_recomputed(text_cache):
    calls = []
    assert [text_cache.get("a", recording_compute(calls, "xxx")) for _ in range(3)] == ["xxx"] * 3
    assert calls == ["xxx"]


def test_least_recently_used_is_evicted_first(text_cache):
    calls = []
    for key in ("a", "b", "a", "c"):  # a was used after b
        text_cache.get(key, recording_compute(calls, key * 4))
    for key in ("a", "c", "b"):
        text_cache.get(key, recording_compute(calls, key * 4))
    assert calls == ["aaaa", "bbbb", "cccc", "bbbb"]


def test_total_size_is_bounded(text_cache):
    for i in range(50):
        text_cache.get(i, lambda i=i: "x" * (i % 7))
        assert text_cache.total == sum(map(len, text_cache._entries.values())) <= 10


def test_latest_value_is_kept_even_if_too_large(text_cache):
    text_cache.get("small", lambda: "x")
    large = text_cache.get("large", lambda: "x" * 11)
    assert text_cache.get("large", lambda: pytest.fail("computed again")) is large
    assert text_cache.total == 11
    text_cache.get("small", lambda: "x")
    assert text_cache.total == 1


def test_errors_are_not_cached(text_cache):
    with pytest.raises(ZeroDivisionError):
        text_cache.get("a", lambda: 1 / 0)
    assert text_cache.get("a", lambda: "x") == "x"


def test_slow_computation_does_not_block_others(text_cache):
    started, finish = threading.Event(), threading.Event()

    def slow() -> str:
        started.set()
        assert finish.wait(5)
        return "slow"

    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(text_cache.get, "slow", slow)
        assert started.wait(5)
        assert text_cache.get("quick", lambda: "quick") == "quick"
        finish.set()
        assert future.result() == "slow"


def test_threads_can_share_a_cache():
    cache, interval = LRUCache(20, size=len), sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(8) as pool:
            answers = list(pool.map(lambda i: cache.get(i % 9, lambda: str(i % 9) * 5), range(3000)))
    finally:
        sys.setswitchinterval(interval)
    assert answers == [str(i % 9) * 5 for i in range(3000)]
    assert cache.total == sum(map(len, cache._entries.values())) <= 20


def test_dropped_values_do_not_count(text_cache):
    for key in ("a1", "a2", "b1"):
        text_cache.get(key, lambda key=key: key)
    text_cache.drop(lambda key: key.startswith("a"))
    assert (list(text_cache), text_cache.total) == (["b1"], 2)
