"""Key-value stores of bytes: both kinds, and the app without an available store."""

import logging
import multiprocessing
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from explorer.web import key_value_stores
from explorer.web.key_value_stores import FaultTolerantStore, MemoryStore, StoreError, open_store

MAX_BYTES = 10_000


@pytest.fixture
def store(address):
    return open_store(address, "answers", MAX_BYTES)


def test_value_is_found_until_dropped_or_replaced(store):
    assert store.get("a") is None
    store.put("a", b"\x00one\xff", 60)
    assert store.get("a") == b"\x00one\xff"
    store.put("a", b"", 60)
    assert store.get("a") == b""
    store.drop("a")
    store.drop("never there")
    assert store.get("a") is None and store.keys() == []


def test_value_expires(store):
    store.put("soon", b"x", 0.15)
    store.put("later", b"y", 60)
    assert store.keys() == ["later", "soon"]
    time.sleep(0.2)
    assert store.get("soon") is None and store.get("later") == b"y" and store.keys() == ["later"]


def test_keys_are_listed_by_prefix(store):
    for key in ("room/b/2", "room/a/1", "room/b/1", "roam", "room%"):
        store.put(key, b"", 60)
    assert store.keys("room/b/") == ["room/b/1", "room/b/2"]
    assert store.keys() == ["roam", "room%", "room/a/1", "room/b/1", "room/b/2"]


def test_total_size_is_limited(store):
    for number in range(7):
        store.put(str(number), bytes(3000), 60 + number)
    assert store.keys() == ["4", "5", "6"]
    store.put("short", bytes(2000), 1)  # expires first
    assert store.keys() == ["5", "6"] or store.keys() == ["4", "5", "6"]
    store.put("5", bytes(9000), 600)
    assert store.keys() == ["5"]
    store.put("5", bytes(MAX_BYTES + 1), 60)
    assert store.keys() == []
    store.put("6", bytes(MAX_BYTES), 60)
    assert store.keys() == ["6"]


def test_dropped_and_replaced_bytes_do_not_count(store):
    for _time in range(9):
        store.put("a", bytes(4000), 60)
        store.put("b", bytes(4000), 60)
        store.drop("a")
    store.put("c", bytes(6000), 70)
    assert store.keys() == ["b", "c"]
    for _time in range(3):
        store.drop("a")  # already dropped
    store.put("d", bytes(4000), 80)
    assert store.keys() == ["c", "d"]  # the three together would exceed the limit


def test_messages_arrive_in_order_at_all_listeners(store):
    store.publish("room", b"before anybody listened")
    with store.listen("room") as first, store.listen("room") as second, store.listen("other") as other:
        assert first(0.01) is None
        store.publish("room", b"1")
        store.publish("room", b"2")
        assert [first(2), first(2), second(2), second(2)] == [b"1", b"2", b"1", b"2"]
        began = time.monotonic()
        assert other(0.1) is None and first(0) is None
        assert 0.05 < time.monotonic() - began < 1
        threading.Timer(0.1, store.publish, ["other", b"3"]).start()
        assert other(5) == b"3"


def test_store_is_thread_safe(store):
    def put_and_get(number: int) -> bytes | None:
        store.put(str(number), str(number).encode(), 60)
        return store.get(str(number))

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(put_and_get, range(200))) == [str(number).encode() for number in range(200)]


def test_stores_of_different_names_are_separate(address):
    answers, rooms = open_store(address, "answers", MAX_BYTES), open_store(address, "rooms", MAX_BYTES)
    rooms.put("a", b"of a room", 60)
    with rooms.listen("a") as next_message:
        answers.publish("a", b"of an answer")
        for number in range(5):
            answers.put(str(number), bytes(MAX_BYTES), 600)
        assert next_message(0.1) is None
    assert answers.get("a") is None and rooms.get("a") == b"of a room"


def put_and_publish(address: str):
    store = open_store(address, "answers", MAX_BYTES)
    store.put("from another process", b"x", 60)
    store.publish("room", b"hello")


@pytest.mark.parametrize("address", ["redis"], indirect=True)
def test_other_process_shares_store(address, store):
    with store.listen("room") as next_message:
        other = multiprocessing.get_context("fork").Process(target=put_and_publish, args=[address])
        other.start()
        assert next_message(30) == b"hello"
        other.join()
    assert store.get("from another process") == b"x"


def test_store_location_hides_password():
    assert isinstance(open_store("", "a"), MemoryStore)
    pytest.importorskip("redis", reason="needs Python's package for Redis: pip install redis")
    assert open_store("redis://me:secret@somewhere:7/1", "a").location == "redis://somewhere:7"


@pytest.mark.parametrize("address", ["kept.db", "file:kept.db", "http://127.0.0.1", "redis:", "redis://"])
def test_invalid_store_url_is_refused(address):
    with pytest.raises(ValueError, match="give redis://HOST or rediss://HOST"):
        open_store(address, "a")


class UnreliableStore(MemoryStore):
    """Store that answers while `works`, and counts its reads."""

    works, num_reads = True, 0

    def get(self, key: str) -> bytes | None:
        self.num_reads += 1
        if not self.works:
            raise StoreError("gone")
        return super().get(key)


def test_failing_store_returns_none_logs_once_and_recovers(monkeypatch, caplog):
    caplog.set_level(logging.INFO, "explorer")
    unreliable = UnreliableStore()
    store = FaultTolerantStore(unreliable)
    store.put("a", b"x", 60)
    assert store.get("a") == b"x" and store.is_available
    unreliable.works = False
    assert [store.get("a") for _time in range(5)] == [None] * 5
    assert unreliable.num_reads == 2 and not store.is_available  # no retry at every read after the first failure
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "continuing without it: gone" in caplog.text
    monkeypatch.setattr(key_value_stores, "RETRY_AFTER_S", 0.0)
    store._retry_at = 1e-9
    assert store.get("a") is None and len(caplog.records) == 1
    unreliable.works = True
    assert store.get("a") == b"x" and store.is_available
    assert "responds again" in caplog.text


def test_killed_redis_server_recovers(redis_server, monkeypatch):
    monkeypatch.setattr(key_value_stores, "RETRY_AFTER_S", 0.0)
    store = FaultTolerantStore(open_store(redis_server.address, "answers"))
    store.put("a", b"x", 60)
    assert store.get("a") == b"x"
    redis_server.kill()
    assert store.get("a") is None and not store.is_available
    store.put("a", b"y", 60)
    redis_server.start()
    store.put("a", b"z", 60)
    assert store.get("a") == b"z" and store.is_available


def test_missing_redis_package_is_explained(monkeypatch):
    monkeypatch.setitem(sys.modules, "redis", None)
    with pytest.raises(StoreError, match="pip install redis"):
        open_store("redis://127.0.0.1", "answers")
