"""Servers that go and come back, and what is seen of it."""

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
from playwright.sync_api import expect

from ..conftest import PATIENCE

ROOT = Path(__file__).parents[3]
SERVE = """
import sys
from pathlib import Path
import model.checkpoint
model.checkpoint.CHECKPOINTS = Path(sys.argv[1])

from explorer.tracing.library import Library
from explorer.web.page import Page
port = int(sys.argv[sys.argv.index("--port") + 1])
Page(Library("cpu"), "tiny").launch(server_port=port, quiet=True)
"""
SERVE_FROM_WORKERS = """
import sys
from explorer.web.workers.processes import Process
from explorer.web.workers.serving import serve
serve([Process(number, [sys.executable, *sys.argv[2:]]) for number in range(2)], "127.0.0.1", int(sys.argv[1]))
"""
ONE_MOMENT = """(() => {
  const { prompt, generated } = page.state, chips = document.querySelectorAll("#strip .chip");
  return prompt && (chips.length === prompt.length + generated.length || document.querySelector("#strip .earlier"))
    && document.querySelector("#attention-pattern .plot")?._fullLayout?.yaxis._categories.length === chips.length
    && document.querySelector("#next-token-words").textContent.includes(`(position ${chips.length - 1})`);
})()"""


class Server:
    """The app in a process of its own, always at the same port.

    Args:
        command: arguments of Python; where it is to listen is added.
        there: what answers once it is.
    """

    def __init__(self, *command: str | Path, there: str = "gradio_api/app_id"):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.command, self.address, self.there = command, f"http://127.0.0.1:{self.port}", there

    def start(self):
        command = [str(self.port) if part is Server else part for part in self.command]
        self.process = subprocess.Popen([sys.executable, *command], cwd=ROOT)
        end = time.monotonic() + 3 * PATIENCE / 1000  # busy machines import for a while
        while True:
            try:
                return httpx.get(f"{self.address}/{self.there}").raise_for_status()
            except httpx.HTTPError:
                assert time.monotonic() < end and self.process.poll() is None
                time.sleep(0.1)

    @property
    def runs(self) -> bool:
        return self.process.poll() is None

    def stop(self):
        self.process.kill()
        self.process.wait()


@contextmanager
def two_workers_of(serve: str, *given: str | Path) -> Iterator[Server]:
    """A front before two processes, both of which are there.

    Args:
        serve: the program of each.
        given: its arguments.
    """
    server = Server("-c", SERVE_FROM_WORKERS, Server, "-c", serve, *given)
    server.start()
    for number in (0, 1):
        while httpx.get(f"{server.address}/w{number}/config").status_code != 200:
            time.sleep(0.1)
    yield server
    server.process.terminate()
    server.process.wait()


def banner(person):
    return person.page.get_by_role("status").and_(person.page.locator("#connection"))


def write(person, tokens: int):
    """Press Generate and wait for the first tokens."""
    person.page.get_by_role("button", name="Generate", exact=True).click()
    expect(person.chips.and_(person.page.locator(".generated")).nth(tokens)).to_be_attached()
