"""A Redis server for these tests, and the addresses of stores."""

import shutil
import subprocess
import time
from pathlib import Path

import pytest

from tests.benchmarks.served import free_port


class RedisServer:
    def __init__(self, command: str, folder):
        self.command, self.folder, self.port = command, folder, free_port()
        self.address = f"redis://127.0.0.1:{self.port}"

    def start(self):
        import redis

        options = ["--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--dir", str(self.folder)]
        self.process = subprocess.Popen([self.command, *options], stdout=subprocess.DEVNULL)
        end = time.monotonic() + 30
        while True:
            try:
                return redis.Redis(port=self.port).ping()
            except redis.ConnectionError:
                assert time.monotonic() < end and self.process.poll() is None
                time.sleep(0.02)

    def kill(self):
        self.process.kill()
        self.process.wait()


@pytest.fixture(params=["memory", "file", "redis"])
def address(request, tmp_path) -> str:
    """Address of a store of each kind."""
    return make_store_address(request.param, request, tmp_path)


def make_store_address(kind: str, request: pytest.FixtureRequest, folder: Path) -> str:
    if kind == "redis":
        return request.getfixturevalue("redis_server").address
    return "" if kind == "memory" else f"file:{folder / 'kept.db'}"


@pytest.fixture
def redis_server(tmp_path):
    pytest.importorskip("redis", reason="needs Python's package for Redis: pip install redis")
    if not (command := shutil.which("redis-server")):
        pytest.skip("needs redis-server: apt-get install redis-server")
    server = RedisServer(command, tmp_path)
    server.start()
    yield server
    server.kill()
