import pytest

from explorer.tracing import model_catalog
from explorer.tracing.model_catalog import available_bytes, format_bytes


@pytest.fixture
def machine(tmp_path, monkeypatch):
    (tmp_path / "meminfo").write_text("MemTotal:  8000 kB\nMemFree: 100 kB\nMemAvailable:    5000 kB\n")
    monkeypatch.setattr(model_catalog, "MEMINFO", tmp_path / "meminfo")
    monkeypatch.setattr(model_catalog, "LIMITS", ((tmp_path / "max", tmp_path / "current"),))
    return tmp_path


def test_available_bytes_reads_meminfo(machine):
    assert available_bytes("cpu") == 5000 * 1024


@pytest.mark.parametrize(("limit", "left"), [("3000000", 1_000_000), ("1000", 0), ("max", 5000 * 1024)])
def test_available_bytes_respects_container_limit(machine, limit, left):
    (machine / "max").write_text(limit)
    (machine / "current").write_text("2000000")
    assert available_bytes("cpu") == left


@pytest.mark.parametrize(("size", "words"), [(1, "1 MB"), (538e6, "538 MB"), (2.21e9, "2.2 GB")])
def test_format_bytes(size, words):
    assert format_bytes(size) == words
