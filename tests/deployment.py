"""The app as docs/deploy.md runs it: Redis, two processes, and nginx with the guide's configuration."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx
import pytest

from tests.benchmarks.app_server import free_port

ROOT = Path(__file__).parents[1]
NGINX_CONF = ROOT / "docs" / "deploy" / "nginx.conf"
START_S = 180.0  # seconds; busy machines import for a while
REDIS_OPTIONS = ("--save", "", "--maxmemory", "256mb", "--maxmemory-policy", "volatile-ttl")


class RedisServer:
    """Redis at a fixed port; skips the test if Redis is not installed.

    Args:
        folder: where it runs.
    """

    def __init__(self, folder: Path):
        pytest.importorskip("redis", reason="needs Python's package for Redis: pip install redis")
        self.command, self.folder = executable("redis-server", "redis-server"), folder
        self.port = free_port()
        self.address = f"redis://127.0.0.1:{self.port}"

    def start(self):
        import redis

        options = ["--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(self.folder), *REDIS_OPTIONS]
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


class AppProcess:
    """A process of the app at its own port."""

    def __init__(self, *command: str | Path):
        self.port = free_port()
        environment = os.environ | {"FORWARDED_ALLOW_IPS": "*"}  # as in compose.yaml
        command = [sys.executable, *command, "--port", str(self.port)]
        self.process = subprocess.Popen(command, cwd=ROOT, env=environment)

    def wait_until_served(self):
        """Wait until the process answers, and set `app_id`, Gradio's identifier of the process."""
        end = time.monotonic() + START_S
        while True:
            try:
                answer = httpx.get(f"http://127.0.0.1:{self.port}/gradio_api/app_id").raise_for_status()
                self.app_id = answer.json()["app_id"]
                return
            except httpx.HTTPError:
                assert time.monotonic() < end and self.process.poll() is None
                time.sleep(0.1)

    def kill(self):
        self.process.kill()
        self.process.wait()


class Deployment:
    """Running processes and their addresses.

    Attributes:
        address: URL of nginx.
        processes: two of the app.
        store: address of the Redis that they share.
    """

    def __init__(self, address: str, processes: list[AppProcess], store: str):
        self.address, self.processes, self.store = address, processes, store


@contextmanager
def deploy(folder: Path, *command: str | Path) -> Iterator[Deployment]:
    """Run Redis, nginx and two processes of the app; skip the test if one of the programs is not installed.

    Args:
        folder: for what they write.
        command: arguments of Python that start the app, to which `--store` and `--port` are added.
    """
    nginx, redis = executable("nginx", "nginx-light"), RedisServer(folder)
    with ExitStack() as running:
        redis.start()
        running.callback(redis.kill)
        processes = []
        for _number in range(2):
            processes.append(AppProcess(*command, "--store", redis.address))
            running.callback(processes[-1].kill)
        for process in processes:
            process.wait_until_served()
        port = free_port()
        (folder / "nginx.conf").write_text(make_nginx_config(folder, port, processes), "utf-8")
        options = ["-p", folder, "-c", folder / "nginx.conf", "-e", "stderr"]
        directives = f"daemon off; pid {folder}/pid; error_log stderr crit;"
        server = subprocess.Popen([nginx, *options, "-g", directives])
        running.callback(server.wait)
        running.callback(server.terminate)
        address, end = f"http://127.0.0.1:{port}", time.monotonic() + 30
        while not is_served(address):
            assert time.monotonic() < end and server.poll() is None
            time.sleep(0.02)
        yield Deployment(address, processes, redis.address)


def make_nginx_config(folder: Path, port: int, processes: list[AppProcess]) -> str:
    """Return the guide's nginx.conf with local ports and processes, writing only to `folder`."""
    text = NGINX_CONF.read_text("utf-8")
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    paths = "".join(f"{kind}_temp_path {folder}/{kind}; " for kind in kinds)
    (server,) = (line for line in text.splitlines() if "server explorer:7860 " in line)
    servers = "\n".join(server.replace("explorer:7860", f"127.0.0.1:{process.port}") for process in processes)
    for old, new in (
        ("http {", f"http {{ {paths} access_log off;"),
        ("listen 8080;", f"listen 127.0.0.1:{port};"),
        (server, servers),
    ):
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text


def is_served(address: str) -> bool:
    try:
        return httpx.get(f"{address}/health").is_success
    except httpx.TransportError:
        return False


def executable(name: str, package: str) -> str:
    """Return the path of a program; skip the test if there is none."""
    path = shutil.which(name)
    return path or pytest.skip(f"needs {name}: apt-get install {package}")
