"""Where the shared store goes away."""

import logging
import sys

import pytest

from explorer.web.shared import going_without
from explorer.web.shared.going_without import GoingWithout
from explorer.web.shared.in_memory import InMemory
from explorer.web.shared.on_redis import NoRedis
from explorer.web.shared.opened import store_at
from explorer.web.shared.store import StoreError


class Broken(InMemory):
    """Answers as long as `works`."""

    works, asked = True, 0

    def get(self, key: str) -> bytes | None:
        self.asked += 1
        if not self.works:
            raise StoreError("gone")
        return super().get(key)


def test_one_that_is_gone_finds_nothing_is_logged_once_and_comes_back(monkeypatch, caplog):
    caplog.set_level(logging.INFO, "explorer")
    broken = Broken()
    store = GoingWithout(broken)
    store.put("a", b"x", 60)
    assert store.get("a") == b"x" and store.is_there
    broken.works = False
    assert [store.get("a") for _time in range(5)] == [None] * 5
    assert broken.asked == 2 and not store.is_there  # nobody waits for it five times
    assert [record.levelname for record in caplog.records] == ["WARNING"] and "goes on without: gone" in caplog.text
    monkeypatch.setattr(going_without, "AGAIN_AFTER", 0.0)
    store._asked_again_at = 1e-9
    assert store.get("a") is None and len(caplog.records) == 1
    broken.works = True
    assert store.get("a") == b"x" and store.is_there
    assert "answers again" in caplog.text


def test_a_redis_that_is_killed_and_comes_back(redis_server, monkeypatch):
    monkeypatch.setattr(going_without, "AGAIN_AFTER", 0.0)
    store = GoingWithout(store_at(redis_server.address, "answers"))
    store.put("a", b"x", 60)
    assert store.get("a") == b"x"
    redis_server.kill()
    assert store.get("a") is None and not store.is_there
    store.put("a", b"y", 60)
    store.drop("a")
    redis_server.start()
    store.put("a", b"z", 60)
    assert store.get("a") == b"z" and store.is_there


def test_a_file_that_cannot_be_is_told(tmp_path):
    with pytest.raises(StoreError):
        store_at(f"file:{tmp_path}/no folder/kept.db", "answers")


def test_a_file_that_breaks_is_gone_without(tmp_path):
    store = GoingWithout(store_at(f"file:{tmp_path}/kept.db", "answers"))
    store.put("a", b"x", 60)
    store.store._file.execute("DROP TABLE kept")
    assert store.get("a") is None and not store.is_there


def test_without_its_package_redis_is_told_in_a_sentence(monkeypatch):
    monkeypatch.setitem(sys.modules, "redis", None)
    with pytest.raises(NoRedis, match="pip install redis"):
        store_at("redis://127.0.0.1", "answers")
