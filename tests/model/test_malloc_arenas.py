import subprocess
import sys

import pytest

from model import weight_placement
from model.weight_placement import limit_malloc_arenas, trim_heap

# Sixteen threads hold memory at once, each from its own heap if glibc gives it one; then glibc lists its heaps.
HEAP_SCRIPT = """
import ctypes, runpy, sys, threading
if "share" in sys.argv:
    runpy.run_path(sys.argv[2])["limit_malloc_arenas"]()  # not of the package, which imports torch
libc, together, kept = ctypes.CDLL(None), threading.Barrier(16), []
def hold():
    kept.append(bytearray(10_000))
    together.wait()
threads = [threading.Thread(target=hold) for _ in range(16)]
for thread in threads: thread.start()
for thread in threads: thread.join()
libc.fopen.restype = ctypes.c_void_p
told = libc.fopen(sys.argv[1].encode(), b"w")
libc.malloc_info(0, ctypes.c_void_p(told))
libc.fclose(ctypes.c_void_p(told))
"""


def count_heaps(path, *how: str) -> int:
    subprocess.run([sys.executable, "-c", HEAP_SCRIPT, str(path), weight_placement.__file__, *how], check=True)
    return path.read_text().count("<heap nr=")


@pytest.mark.skipif(
    not hasattr(weight_placement.ctypes.CDLL(None), "malloc_info"), reason="only glibc has several heaps"
)
def test_threads_share_two_heaps(tmp_path):
    assert count_heaps(tmp_path / "heaps.xml") > 2
    assert count_heaps(tmp_path / "heaps.xml", "share") == 2


def test_other_systems_are_unaffected(monkeypatch):
    def none(name):
        raise OSError

    weight_placement._libc_function.cache_clear()
    monkeypatch.setattr(weight_placement.ctypes, "CDLL", none)
    trim_heap()
    limit_malloc_arenas()
    weight_placement._libc_function.cache_clear()
