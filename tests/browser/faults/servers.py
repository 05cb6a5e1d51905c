"""Servers that stop and restart, and the page's banner about it."""

import socket
import subprocess
import sys
import time
from pathlib import Path

import httpx
from playwright.sync_api import expect

from ..conftest import TIMEOUT_MS

ROOT = Path(__file__).parents[3]
SERVE = """
import sys
from pathlib import Path
import model.checkpoint
model.checkpoint.CHECKPOINTS = Path(sys.argv[1])

from explorer.tracing.model_library import ModelLibrary
from explorer.web.page import Page
port = int(sys.argv[sys.argv.index("--port") + 1])
Page(ModelLibrary("cpu"), "tiny").launch(server_port=port, quiet=True)
"""
# Slows token generation down, so that the process can be killed before it generated the last token.
SLOW_GENERATION = """
import time
from explorer.web.actions import generation_actions
generate = generation_actions.generate
def generate_slowly(*args, **kwargs):
    for step in generate(*args, **kwargs):
        time.sleep(0.05)
        yield step
generation_actions.generate = generate_slowly
"""
SHARED = 'shared=sys.argv[sys.argv.index("--store") + 1]'
SERVE_SLOWLY_AND_SHARE = SERVE.replace('"tiny")', f'"tiny", {SHARED})').replace("port =", f"{SLOW_GENERATION}port =")
IS_CONSISTENT = """(() => {
  const { prompt, generated } = page.state, chips = document.querySelectorAll("#strip .chip");
  return prompt && (chips.length === prompt.length + generated.length || document.querySelector("#strip .earlier"))
    && document.querySelector("#attention-pattern .plot")?._fullLayout?.yaxis._categories.length === chips.length
    && document.querySelector("#next-token-words").textContent.includes(`(position ${chips.length - 1})`);
})()"""


class Server:
    """The app in a process of its own, always at the same port.

    Args:
        command: arguments of Python, in which `Server` is a placeholder for the port.
    """

    def __init__(self, *command: str | Path):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.command, self.address = command, f"http://127.0.0.1:{self.port}"

    def start(self):
        command = [str(self.port) if argument is Server else argument for argument in self.command]
        self.process = subprocess.Popen([sys.executable, *command], cwd=ROOT)
        end = time.monotonic() + 3 * TIMEOUT_MS / 1000  # imports take long on busy machines
        while True:
            try:
                return httpx.get(f"{self.address}/gradio_api/app_id").raise_for_status()
            except httpx.HTTPError:
                assert time.monotonic() < end and self.process.poll() is None
                time.sleep(0.1)

    @property
    def is_running(self) -> bool:
        return self.process.poll() is None

    def stop(self):
        self.process.kill()
        self.process.wait()


def find_banner(person):
    return person.page.get_by_role("status").and_(person.page.locator("#connection"))


def generate_tokens(person, tokens: int):
    """Press Generate and wait for the first tokens."""
    person.page.locator("#generate").click()
    expect(person.chips.and_(person.page.locator(".generated")).nth(tokens)).to_be_attached()
