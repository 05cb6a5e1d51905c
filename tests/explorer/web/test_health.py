"""The server's health report, compared with known counts."""

import os
from types import SimpleNamespace

import pytest

from explorer.web.key_value_stores import FaultTolerantStore, StoreError
from explorer.web.public_api import health, resident_bytes


class FullStore:
    location = "somewhere"

    def put(self, key, value, seconds):
        raise StoreError("full")


@pytest.fixture
def library():
    return SimpleNamespace(memory=lambda: {"models": {"b": 7, "a": 9}, "traces_bytes": 100, "looked_at_bytes": 23})


@pytest.fixture
def blocks():
    """Blocks with three sessions, and two events in Gradio's queue."""
    app = SimpleNamespace(state_holder=SimpleNamespace(session_data=dict.fromkeys("abc")))
    return SimpleNamespace(app=app, _queue=[1, 2])


def test_report_counts_models_sessions_and_queue(library, blocks):
    report = health(library, blocks, num_waiting=4)
    assert (report["models"], report["traces_bytes"], report["sessions"], report["queue"]) == (["a", "b"], 123, 3, 6)
    assert report["shared"] == "" and abs(report["rss_bytes"] - resident_bytes()) < 50e6
    assert all(name in report["version"] for name in ("gradio ", "torch ", "python "))


def test_report_names_store_and_its_availability(library, blocks):
    store = FaultTolerantStore(FullStore())
    assert health(library, blocks, shared=store)["shared"] == "somewhere"
    store.put("a", b"", 60)
    assert health(library, blocks, shared=store)["shared"] == "somewhere, which does not answer"


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="other systems report peak memory only")
def test_memory_is_current_not_peak():
    before = resident_bytes()
    buffer = bytearray(64 << 20)
    with_it = resident_bytes()
    del buffer
    assert with_it - before > 60e6 and resident_bytes() < with_it - 60e6
