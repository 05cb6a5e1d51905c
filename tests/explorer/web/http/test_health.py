"""What a server tells of itself, counted by hand."""

import os
from types import SimpleNamespace

import pytest

from explorer.web.http.health import health, resident
from explorer.web.shared.going_without import GoingWithout
from explorer.web.shared.in_memory import InMemory
from explorer.web.shared.store import StoreError


class Full(InMemory):
    place = "somewhere"

    def put(self, key, value, seconds):
        raise StoreError("full")


@pytest.fixture
def library():
    return SimpleNamespace(memory=lambda: {"models": {"b": 7, "a": 9}, "traces_bytes": 100, "looked_at_bytes": 23})


@pytest.fixture
def blocks():
    """With three sessions, two events of theirs in Gradio's queue, and four answers that wait for a place."""
    app = SimpleNamespace(state_holder=SimpleNamespace(session_data=dict.fromkeys("abc")))
    return SimpleNamespace(app=app, limiter=SimpleNamespace(waiting=4), _queue=[1, 2])


def test_all_is_counted(library, blocks):
    told = health(library, blocks)
    assert (told["models"], told["traces_bytes"], told["sessions"], told["queue"]) == (["a", "b"], 123, 3, 6)
    assert told["shared"] == "" and abs(told["rss_bytes"] - resident()) < 50e6
    assert all(name in told["version"] for name in ("gradio ", "torch ", "python "))


def test_where_answers_are_shared_is_told_and_whether_they_are_there(library, blocks):
    store = GoingWithout(Full())
    assert health(library, blocks, store)["shared"] == "somewhere"
    store.put("a", b"", 60)
    assert health(library, blocks, store)["shared"] == "somewhere, which does not answer"


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="other systems tell the most there ever was")
def test_memory_is_what_there_is_and_not_what_there_was():
    before = resident()
    held = bytearray(64 << 20)
    with_it = resident()
    del held
    assert with_it - before > 60e6 and resident() < with_it - 60e6
