"""Stores of answers and rooms: in memory and in Redis, and the app without an available store."""

import logging
import multiprocessing
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from explorer.web import key_value_stores
from explorer.web.key_value_stores import FaultTolerantStore, MemoryRooms, RedisStore, StoreError


@pytest.fixture
def store(redis_server) -> RedisStore:
    return RedisStore(redis_server.address)


@pytest.fixture
def rooms(address) -> MemoryRooms | RedisStore:
    return RedisStore(address) if address else MemoryRooms()


def test_answer_is_found_until_replaced(store):
    assert store.get("a") is None
    store.put("a", b"\x00one\xff", 60)
    assert store.get("a") == b"\x00one\xff"
    store.put("a", b"", 60)
    assert store.get("a") == b""


def test_answer_expires(store):
    store.put("soon", b"x", 0.15)
    store.put("later", b"y", 60)
    assert store.get("soon") == b"x"
    time.sleep(0.2)
    assert store.get("soon") is None and store.get("later") == b"y"


def test_fields_of_room_are_found_until_deleted_or_replaced(rooms):
    rooms.create_room("A", {"key": b"\x00one\xff"}, 60)
    rooms.create_room("B", {"key": b"two"}, 60)
    rooms.write_field("A", "reply/order:2/ä", b"1")
    rooms.write_field("A", "reply/order:2/ä", b"2")
    assert rooms.read_room("A") == {"key": b"\x00one\xff", "reply/order:2/ä": b"2"} and rooms.count_rooms() == 2
    rooms.write_field("A", "reply/order:2/ä", None)
    rooms.write_field("A", "never there", None)
    assert rooms.read_room("A") == {"key": b"\x00one\xff"} and rooms.read_room("B") == {"key": b"two"}
    rooms.delete_room("A")
    rooms.delete_room("A")
    assert rooms.read_room("A") == {} and rooms.count_rooms() == 1


def test_room_expires_with_its_fields_and_does_not_return(rooms):
    for code in "AB":
        rooms.create_room(code, {"key": b"x"}, 0.3)
        rooms.write_field(code, "led", b"y")
    rooms.renew_room("B", 60)
    time.sleep(0.35)
    rooms.write_field("A", "led", b"z")
    rooms.renew_room("A", 60)
    assert rooms.read_room("A") == {} and rooms.read_room("B") == {"key": b"x", "led": b"y"}
    assert rooms.count_rooms() == 1


def test_rooms_are_thread_safe(rooms):
    rooms.create_room("A", {"key": b"x"}, 60)

    def write_and_read(number: int) -> bytes:
        rooms.write_field("A", str(number), str(number).encode())
        return rooms.read_room("A")[str(number)]

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(write_and_read, range(200))) == [str(number).encode() for number in range(200)]


def test_answers_and_rooms_are_separate(store):
    store.put("A", b"of an answer", 60)
    store.create_room("A", {"key": b"of a room"}, 60)
    assert store.get("A") == b"of an answer" and store.read_room("A") == {"key": b"of a room"}
    assert store.count_rooms() == 1


def write_from_another_process(address: str):
    store = RedisStore(address)
    store.put("from another process", b"x", 60)
    store.write_field("A", "led", b"y")


def test_other_process_shares_store(redis_server, store):
    store.create_room("A", {"key": b"x"}, 60)
    other = multiprocessing.get_context("fork").Process(target=write_from_another_process, args=[redis_server.address])
    other.start()
    other.join()
    assert store.get("from another process") == b"x" and store.read_room("A") == {"key": b"x", "led": b"y"}


def test_store_location_hides_password():
    pytest.importorskip("redis", reason="needs Python's package for Redis: pip install redis")
    assert RedisStore("redis://me:secret@somewhere:7/1").location == "redis://somewhere:7"


@pytest.mark.parametrize("address", ["kept.db", "file:kept.db", "http://127.0.0.1", "redis:", "redis://"])
def test_invalid_store_url_is_refused(address):
    with pytest.raises(ValueError, match="give redis://HOST or rediss://HOST"):
        RedisStore(address)


class UnreliableStore:
    """Store that answers while `works`, and counts its reads."""

    location, works, num_reads = "here", True, 0

    def get(self, key: str) -> bytes | None:
        self.num_reads += 1
        if not self.works:
            raise StoreError("gone")
        return b"x"


def test_failing_store_returns_none_logs_once_and_recovers(monkeypatch, caplog):
    caplog.set_level(logging.INFO, "explorer")
    unreliable = UnreliableStore()
    store = FaultTolerantStore(unreliable)
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
    store = FaultTolerantStore(RedisStore(redis_server.address))
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
        RedisStore("redis://127.0.0.1")
