"""A class on three processes behind a proxy, of which one is killed."""

import asyncio
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import httpx
import pytest

from explorer.web.shared.in_a_file import InAFile
from tests.benchmarks.classroom import SAME, family, tell
from tests.benchmarks.served import free_port
from tests.benchmarks.visitor import Told, Visitor

ROOT = Path(__file__).parents[4]
NGINX = ROOT / "explorer" / "web" / "workers" / "examples" / "nginx.conf"
WORKERS, PEOPLE, SECONDS, KILLED_AFTER, STARTED = 3, 9, 16.0, 7.0, 180.0


@pytest.fixture
def proxied(tmp_path):
    """`proxied(port)` is the address at which nginx, as our example has it, sends on to a port of this machine."""
    if not (nginx := shutil.which("nginx")):
        pytest.skip("needs nginx: apt install nginx-light")
    running = []

    def proxied(port: int) -> str:
        here, text = free_port(), NGINX.read_text("utf-8")
        places = "".join(f"{kind}_temp_path {tmp_path}/{kind};" for kind in ("client_body", "proxy", "fastcgi"))
        places += f"uwsgi_temp_path {tmp_path}/uwsgi; scgi_temp_path {tmp_path}/scgi; access_log off;"
        for ours, theirs in (
            ("listen 8080", f"listen 127.0.0.1:{here}"),
            ("127.0.0.1:7860", f"127.0.0.1:{port}"),
            ("server_name lab.example;", "server_name localhost;" + places.replace(";", ";\n")),
        ):
            assert theirs in (text := text.replace(ours, theirs))
        (tmp_path / "nginx.conf").write_text(text, "utf-8")
        command = [nginx, "-p", tmp_path, "-c", tmp_path / "nginx.conf", "-e", "stderr"]
        running.append(subprocess.Popen([*command, "-g", f"daemon off; error_log stderr crit; pid {tmp_path}/pid;"]))
        return f"http://127.0.0.1:{here}/explorer/"

    yield proxied
    for process in running:
        process.terminate()
        process.wait()


@pytest.fixture
def served(proxied, tmp_path):
    """The front's process, the address of its proxy, and what its workers share."""
    port, kept = free_port(), tmp_path / "answers.db"
    options = ["--port", str(port), "--workers", str(WORKERS), "--log-level", "warning", "--shared", f"file:{kept}"]
    address = proxied(port)
    path = {"GRADIO_ROOT_PATH": httpx.URL(address).path.rstrip("/")}
    command = [sys.executable, "app.py", *options]
    front = subprocess.Popen(command, cwd=ROOT, env=os.environ | path, stdout=subprocess.DEVNULL)
    yield SimpleNamespace(front=front, address=address, shared=InAFile(kept, "answers"))
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


def there(address: str) -> list[bool]:
    """Which workers are."""
    try:
        return httpx.get(f"{address}health", timeout=10).json()["workers"]
    except (httpx.HTTPError, ValueError):
        return []


async def a_class(address: str, told: Told, killed: int) -> tuple[list[Visitor], dict[int, str]]:
    """Who came, and where each was before a worker was killed."""
    until = time.monotonic() + SECONDS
    people = [Visitor(number, address, told, tokens=200) for number in range(PEOPLE)]
    staying = asyncio.gather(*(person.stay(until) for person in people))
    await asyncio.sleep(KILLED_AFTER)
    before = {person.number: person.here for person in people}
    os.kill(killed, signal.SIGKILL)
    await staying
    return people, before


async def asks(address: str):
    visitor = Visitor(0, address, Told(), SAME)
    async with httpx.AsyncClient(timeout=60, follow_redirects=True) as visitor.client:
        await visitor.come()
        await visitor.new_prompt()
    assert visitor.told.errors == []


@pytest.mark.exhaustive
@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="finds the processes below another in /proc")
def test_a_worker_that_is_killed_takes_nobodys_text_along(served):
    end = time.monotonic() + STARTED
    while there(served.address) != [True] * WORKERS:
        assert time.monotonic() < end
        time.sleep(0.2)
    _front, *workers = family(served.front.pid)
    assert len(workers) == WORKERS
    people, before = asyncio.run(a_class(served.address, told := Told(), workers[1]))
    tell(told)
    after = {person.number: person.here for person in people}
    places = {served.address + place for place in ("w0/", "w1/", "w2/")}
    assert set(before.values()) == places and set(after.values()) <= places
    assert told.errors == [] and told.lost_texts == 0 and told.lost_connections > 0
    moved = [number for number in after if after[number] != before[number]]
    assert moved and len({before[number] for number in moved}) == 1
    assert all(person.done_at > SECONDS - 8 for person in people)  # everybody went on
    assert served.front.poll() is None
    now = family(served.front.pid)[1:]
    assert len(now) == WORKERS and workers[1] not in now  # another in its place, though it may not be there yet
    one, other = [place for place, is_there in zip(sorted(places), there(served.address), strict=True) if is_there][:2]
    asyncio.run(asks(one))
    kept = served.shared.keys()
    asyncio.run(asks(other))
    assert kept and served.shared.keys() == kept  # whatever process answered first
