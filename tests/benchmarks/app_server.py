"""The app in a separate process, for the duration of a measurement."""

import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager


@contextmanager
def serve_app(options: Sequence[str] = ()) -> Iterator[tuple[str, int]]:
    """Serve the app while the block runs; yield its URL, which ends with "/", and its process id.

    Args:
        options: of app.py, without the dashes: public.
    """
    port = free_port()
    command = [sys.executable, "app.py", "--port", str(port), *(f"--{option}" for option in options)]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        address = f"http://127.0.0.1:{port}/"
        _wait_until_served(address)
        yield address, server.pid
    finally:
        server.terminate()
        server.wait()


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def _wait_until_served(address: str):
    for _ in range(1200):
        try:
            urllib.request.urlopen(address)
            return
        except (urllib.error.URLError, ConnectionError):
            time.sleep(0.05)
    sys.exit("the app did not answer within a minute")
