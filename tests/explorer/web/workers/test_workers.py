"""A class on three worker processes behind a proxy, one of which is killed."""

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

from explorer.web.stores.sqlite_store import SqliteStore
from tests.benchmarks.classroom import SHARED_PROMPT, print_report, process_tree
from tests.benchmarks.served import free_port
from tests.benchmarks.visitor import Measurements, SimulatedUser

ROOT = Path(__file__).parents[4]
NGINX = ROOT / "explorer" / "web" / "workers" / "examples" / "nginx.conf"
WORKERS, PEOPLE, SECONDS, KILLED_AFTER, STARTED = 3, 9, 16.0, 7.0, 180.0


@pytest.fixture
def proxied(tmp_path):
    """Function that starts nginx with our example configuration for a port of this machine, and returns its URL."""
    if not (nginx := shutil.which("nginx")):
        pytest.skip("needs nginx: apt install nginx-light")
    running = []

    def start_proxy(port: int) -> str:
        proxy_port, text = free_port(), NGINX.read_text("utf-8")
        directives = "".join(f"{kind}_temp_path {tmp_path}/{kind};" for kind in ("client_body", "proxy", "fastcgi"))
        directives += f"uwsgi_temp_path {tmp_path}/uwsgi; scgi_temp_path {tmp_path}/scgi; access_log off;"
        for example_setting, test_setting in (
            ("listen 8080", f"listen 127.0.0.1:{proxy_port}"),
            ("127.0.0.1:7860", f"127.0.0.1:{port}"),
            ("server_name lab.example;", "server_name localhost;" + directives.replace(";", ";\n")),
        ):
            assert test_setting in (text := text.replace(example_setting, test_setting))
        (tmp_path / "nginx.conf").write_text(text, "utf-8")
        command = [nginx, "-p", tmp_path, "-c", tmp_path / "nginx.conf", "-e", "stderr"]
        running.append(subprocess.Popen([*command, "-g", f"daemon off; error_log stderr crit; pid {tmp_path}/pid;"]))
        return f"http://127.0.0.1:{proxy_port}/explorer/"

    yield start_proxy
    for process in running:
        process.terminate()
        process.wait()


@pytest.fixture
def running_front(proxied, tmp_path):
    """The front's process, the URL of its proxy, and the store that its workers share."""
    port, database = free_port(), tmp_path / "answers.db"
    options = ["--port", str(port), "--workers", str(WORKERS), "--log-level", "warning", "--store", f"file:{database}"]
    address = proxied(port)
    path = {"GRADIO_ROOT_PATH": httpx.URL(address).path.rstrip("/")}
    command = [sys.executable, "app.py", *options]
    front = subprocess.Popen(command, cwd=ROOT, env=os.environ | path, stdout=subprocess.DEVNULL)
    yield SimpleNamespace(front=front, address=address, shared=SqliteStore(database, "answers"))
    child_processes = process_tree(front.pid)
    front.send_signal(signal.SIGTERM)
    front.wait(timeout=60)
    assert [process for process in child_processes if is_running(process)] == []


def is_running(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def workers_alive(address: str) -> list[bool]:
    """Return for each worker whether it answers; [] if the front does not."""
    try:
        return httpx.get(f"{address}health", timeout=10).json()["workers"]
    except (httpx.HTTPError, ValueError):
        return []


async def run_class(address: str, results: Measurements, killed: int) -> tuple[list[SimulatedUser], dict[int, str]]:
    """Let a class work while a worker is killed; return its people, and each one's worker URL before that."""
    until = time.monotonic() + SECONDS
    people = [SimulatedUser(number, address, results, tokens=200) for number in range(PEOPLE)]
    staying = asyncio.gather(*(person.stay(until) for person in people))
    await asyncio.sleep(KILLED_AFTER)
    before = {person.number: person.base_url for person in people}
    os.kill(killed, signal.SIGKILL)
    await staying
    return people, before


async def visit_once(address: str):
    visitor = SimulatedUser(0, address, Measurements(), SHARED_PROMPT)
    async with httpx.AsyncClient(timeout=60, follow_redirects=True) as visitor.client:
        await visitor.load_page()
        await visitor.new_prompt()
    assert visitor.measurements.errors == []


@pytest.mark.exhaustive
@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="finds the processes below another in /proc")
def test_a_worker_that_is_killed_takes_nobodys_text_along(running_front):
    end = time.monotonic() + STARTED
    while workers_alive(running_front.address) != [True] * WORKERS:
        assert time.monotonic() < end
        time.sleep(0.2)
    _front, *workers = process_tree(running_front.front.pid)
    assert len(workers) == WORKERS
    people, before = asyncio.run(run_class(running_front.address, results := Measurements(), workers[1]))
    print_report(results)
    after = {person.number: person.base_url for person in people}
    worker_urls = {running_front.address + url for url in ("w0/", "w1/", "w2/")}
    assert set(before.values()) == worker_urls and set(after.values()) <= worker_urls
    assert results.errors == [] and results.lost_texts == 0 and results.lost_connections > 0
    moved = [number for number in after if after[number] != before[number]]
    assert moved and len({before[number] for number in moved}) == 1
    assert all(person.done_at > SECONDS - 8 for person in people)  # everybody went on
    assert running_front.front.poll() is None
    now = process_tree(running_front.front.pid)[1:]
    assert len(now) == WORKERS and workers[1] not in now  # another in its place, though it may not be there yet
    first_url, second_url = [
        url for url, is_there in zip(sorted(worker_urls), workers_alive(running_front.address), strict=True) if is_there
    ][:2]
    asyncio.run(visit_once(first_url))
    cached_keys = running_front.shared.keys()
    asyncio.run(visit_once(second_url))
    assert cached_keys and running_front.shared.keys() == cached_keys  # whatever process answered first
