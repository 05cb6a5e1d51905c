"""A class on three processes, of which one is killed."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest

from tests.benchmarks.browser import free_port
from tests.benchmarks.classroom import family, tell
from tests.benchmarks.visitor import Told, Visitor

ROOT = Path(__file__).parents[4]
WORKERS, PEOPLE, SECONDS, STARTED = 3, 9, 40.0, 180.0


@pytest.fixture
def served():
    """The front's process, and its address once all workers are there."""
    port = free_port()
    command = [sys.executable, "app.py", "--port", str(port), "--workers", str(WORKERS), "--log-level", "warning"]
    front = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL)
    yield front, f"http://127.0.0.1:{port}/"
    below = family(front.pid)
    front.send_signal(signal.SIGTERM)
    front.wait(timeout=60)
    assert [process for process in below if is_running(process)] == []


def is_running(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def wait_for_workers(address: str, wanted: list[bool]):
    end = time.monotonic() + STARTED
    while True:
        try:
            if httpx.get(f"{address}health", timeout=10).json()["workers"] == wanted:
                return
        except httpx.HTTPError:
            pass
        assert time.monotonic() < end
        time.sleep(0.2)


@pytest.mark.exhaustive
@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="finds the processes below another in /proc")
def test_a_worker_that_is_killed_takes_nobodys_text_along(served):
    front, address = served
    wait_for_workers(address, [True] * WORKERS)
    _front, *workers = family(front.pid)
    told = Told()

    async def a_class():
        until = time.monotonic() + SECONDS
        people = [Visitor(number, address, told, tokens=200) for number in range(PEOPLE)]
        staying = asyncio.gather(*(person.stay(until) for person in people))
        await asyncio.sleep(SECONDS / 2)
        here = {person.number: person.here for person in people}
        os.kill(workers[1], signal.SIGKILL)
        await staying
        return here, {person.number: person.here for person in people}

    before, after = asyncio.run(a_class())
    tell(told)
    assert {path.removeprefix(address) for path in before.values()} == {"w0/", "w1/", "w2/"}
    assert told.errors == [] and told.lost_texts == 0
    assert told.lost_connections > 0 and before != after
    assert all(len(told.seconds[what]) for what in ("prompt", "click"))
    wait_for_workers(address, [True] * WORKERS)
    assert len(family(front.pid)) == 1 + WORKERS and workers[1] not in family(front.pid)
