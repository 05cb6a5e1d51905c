"""Stores that become unavailable."""

import logging
import sys

import pytest

from explorer.web.stores import optional_store
from explorer.web.stores.factory import open_store
from explorer.web.stores.memory_store import MemoryStore
from explorer.web.stores.optional_store import OptionalStore
from explorer.web.stores.redis_store import RedisNotInstalledError
from explorer.web.stores.store import StoreError


class UnreliableStore(MemoryStore):
    """Store that answers while `works`, and counts its reads."""

    works, num_reads = True, 0

    def get(self, key: str) -> bytes | None:
        self.num_reads += 1
        if not self.works:
            raise StoreError("gone")
        return super().get(key)


def test_one_that_is_gone_finds_nothing_is_logged_once_and_comes_back(monkeypatch, caplog):
    caplog.set_level(logging.INFO, "explorer")
    unreliable = UnreliableStore()
    store = OptionalStore(unreliable)
    store.put("a", b"x", 60)
    assert store.get("a") == b"x" and store.is_available
    unreliable.works = False
    assert [store.get("a") for _time in range(5)] == [None] * 5
    assert unreliable.num_reads == 2 and not store.is_available  # after the first failure it is not asked at every read
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "continuing without it: gone" in caplog.text
    monkeypatch.setattr(optional_store, "RETRY_AFTER_S", 0.0)
    store._retry_at = 1e-9
    assert store.get("a") is None and len(caplog.records) == 1
    unreliable.works = True
    assert store.get("a") == b"x" and store.is_available
    assert "responds again" in caplog.text


def test_a_redis_that_is_killed_and_comes_back(redis_server, monkeypatch):
    monkeypatch.setattr(optional_store, "RETRY_AFTER_S", 0.0)
    store = OptionalStore(open_store(redis_server.address, "answers"))
    store.put("a", b"x", 60)
    assert store.get("a") == b"x"
    redis_server.kill()
    assert store.get("a") is None and not store.is_available
    store.put("a", b"y", 60)
    store.drop("a")
    redis_server.start()
    store.put("a", b"z", 60)
    assert store.get("a") == b"z" and store.is_available


def test_a_file_that_cannot_be_is_told(tmp_path):
    with pytest.raises(StoreError):
        open_store(f"file:{tmp_path}/no folder/kept.db", "answers")


def test_a_file_that_breaks_is_gone_without(tmp_path):
    store = OptionalStore(open_store(f"file:{tmp_path}/kept.db", "answers"))
    store.put("a", b"x", 60)
    store.store._file.execute("DROP TABLE kept")
    assert store.get("a") is None and not store.is_available


def test_without_its_package_redis_is_told_in_a_sentence(monkeypatch):
    monkeypatch.setitem(sys.modules, "redis", None)
    with pytest.raises(RedisNotInstalledError, match="pip install redis"):
        open_store("redis://127.0.0.1", "answers")
