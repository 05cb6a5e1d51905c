"""Stub of the Hugging Face Hub, so that no test uses the network."""

import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

SHA = "0123456789abcdef0123456789abcdef01234567"
CHUNK_BYTES = 1 << 14


class Hub:
    """Content and log of the hub.

    Attributes:
        models: name -> the folder of its files.
        gated: names that need a licence.
        requested_paths: paths of the requests.
        pause: called before every chunk of a file is sent, with the bytes sent so far.
    """

    def __init__(self):
        self.models: dict[str, Path] = {}
        self.gated: set[str] = set()
        self.requested_paths: list[str] = []
        self.pause = lambda sent: None


@contextmanager
def serve_hub(hub: Hub) -> Iterator[str]:
    """Serve the hub while the block runs; yield its URL."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self.answer(body=True)

        def do_HEAD(self):
            self.answer(body=False)

        def log_message(self, *args):
            pass

        def answer(self, body: bool):
            path = urlsplit(self.path).path
            hub.requested_paths.append(path)
            if path.startswith("/api/models/"):
                return self.describe("/".join(path.split("/")[3:5]))
            name, _resolve, revision_path = path.strip("/").partition("/resolve/")
            file = revision_path.partition("/")[2]
            if name not in hub.models or not (hub.models[name] / file).is_file():
                return self.refuse("EntryNotFound" if name in hub.models else "RepoNotFound")
            if name in hub.gated:
                return self.refuse("GatedRepo", 403)
            self.send((hub.models[name] / file).read_bytes(), body)

        def describe(self, name: str):
            if name not in hub.models:
                return self.refuse("RepoNotFound", 401)
            if name in hub.gated:
                return self.refuse("GatedRepo", 403)
            files = [path for path in sorted(hub.models[name].rglob("*")) if path.is_file()]
            siblings = [
                {"rfilename": path.relative_to(hub.models[name]).as_posix(), "size": path.stat().st_size}
                for path in files
            ]
            content = json.dumps({"id": name, "modelId": name, "sha": SHA, "siblings": siblings, "private": False})
            self.send(content.encode(), body=True, kind="application/json")

        def send(self, content: bytes, body: bool, kind: str = "application/octet-stream"):
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(content)))
            self.send_header("ETag", f'"{hashlib.sha256(content).hexdigest()}"')
            self.send_header("X-Repo-Commit", SHA)
            self.end_headers()
            try:
                for start in range(0, len(content) if body else 0, CHUNK_BYTES):
                    hub.pause(start)
                    self.wfile.write(content[start : start + CHUNK_BYTES])
            except OSError:  # the client has disconnected
                pass

        def refuse(self, code: str, status: int = 404):
            self.send_response(status)
            self.send_header("X-Error-Code", code)
            self.send_header("Content-Length", "0")
            self.end_headers()

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def use_hub(monkeypatch, address: str, cache: Path):
    """Point the app at the hub, with an empty cache."""
    monkeypatch.setattr("model.pretrained.hub.ENDPOINT", address)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(cache))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    monkeypatch.setattr("huggingface_hub.constants.DOWNLOAD_CHUNK_SIZE", CHUNK_BYTES)
