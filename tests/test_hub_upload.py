"""The commands of docs/deploy.md that upload the project to the Hugging Face Hub, run against a stub of the Hub."""

import base64
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

ROOT = Path(__file__).parent.parent
SPACE = "somebody/explorer"
TEXT = ["README.md", ".gitignore"]
WEIGHTS = "checkpoints/tiny/model.safetensors"
BINARY = [WEIGHTS, "docs/pictures/story.png"]
IGNORED = ["run.safetensors", "checkpoints/model.part", "model/__pycache__/lm.cpython-311.pyc"]


def git(folder: Path, *arguments: str, **options) -> str:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    command = ["git", "-c", "safe.directory=*", *arguments]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, **options).stdout


class Hub(ThreadingHTTPServer):
    """Stub of the Hub that answers as when a new Space is filled, and records the requests."""

    def __init__(self, scratch: Path):
        super().__init__(("127.0.0.1", 0), Answer)
        self.address = f"http://127.0.0.1:{self.server_port}"
        self.scratch = scratch
        git(scratch, "init", "--quiet", check=True)
        self.created = []  # bodies of requests to create a repository
        self.requested_paths = {}  # path -> size and first bytes, of each file in preupload requests
        self.stored = {}  # sha256 -> content in LFS storage
        self.xorbs = []  # packed chunks of files in Xet storage
        self.committed = {}  # path -> content, or sha256 in large-file storage
        self.other_operations = []  # other operations of commits, such as deletions
        self.unknown = []

    def answer(self, method: str, path: str, body: bytes) -> tuple[int, dict]:
        match method, path.replace(SPACE, "SPACE").split("/")[1:]:
            case "POST", ["api", "repos", "create"]:
                self.created.append(json.loads(body))
                return 200 if len(self.created) == 1 else 409, {"url": f"{self.address}/spaces/{SPACE}"}
            case "POST", ["api", "validate-yaml"]:
                return 200, {"errors": [], "warnings": []}
            case "POST", ["api", "spaces", "SPACE", "preupload", "main"]:
                return 200, self.preupload(json.loads(body))
            case "POST", ["spaces", "SPACE.git", "info", "lfs", "objects", "batch"]:
                return 200, {"transfer": "basic", "objects": [self.storage(**o) for o in json.loads(body)["objects"]]}
            case "PUT", ["storage", oid]:
                self.stored[oid] = body
                return 200, {}
            case "GET", ["api", "spaces", "SPACE", "xet-write-token", "main"]:
                return 200, {"accessToken": "nobody's", "exp": 4_000_000_000, "casUrl": self.address}
            case "POST", ["v1", "xorbs", *_]:
                self.xorbs.append(body)
                return 200, {"was_inserted": True}
            case "POST", ["v1", "shards"]:
                return 200, {"result": 1}
            case "POST", ["api", "spaces", "SPACE", "commit", "main"]:
                for line in body.splitlines():
                    self.commit(**json.loads(line))
                return 200, {"commitUrl": f"{self.address}/spaces/{SPACE}/commit/1", "commitOid": "1"}
        self.unknown.append(f"{method} {path}")
        return 404, {"error": "not found"}

    def preupload(self, question: dict) -> dict:
        (self.scratch / ".gitignore").write_text(question.get("gitIgnore", ""), "utf-8")
        paths = [file["path"] for file in question["files"]]
        ignored = git(self.scratch, "check-ignore", "--no-index", "--stdin", "-z", input="\0".join(paths)).split("\0")
        answers = []
        for file in question["files"]:
            sample = base64.b64decode(file["sample"])
            self.requested_paths[file["path"]] = file["size"], sample
            mode = "lfs" if b"\0" in sample else "regular"
            answers.append({"path": file["path"], "uploadMode": mode, "shouldIgnore": file["path"] in ignored})
        return {"files": answers}

    def storage(self, oid: str, size: int) -> dict:
        return {"oid": oid, "size": size, "actions": {"upload": {"href": f"{self.address}/storage/{oid}"}}}

    def commit(self, key: str, value: dict) -> None:
        if key == "file":
            self.committed[value["path"]] = base64.b64decode(value["content"])
        elif key == "lfsFile":
            self.committed[value["path"]] = value["oid"]
        elif key != "header":
            self.other_operations.append((key, value))


class Answer(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        status, answer = self.server.answer(self.command, self.path.partition("?")[0], body)
        content = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = answer

    def log_message(self, *_):
        pass


@pytest.fixture
def hub(tmp_path):
    if shutil.which("git") is None:
        pytest.skip("the stub asks git what .gitignore names")
    (tmp_path / "hub").mkdir()
    hub = Hub(tmp_path / "hub")
    thread = threading.Thread(target=hub.serve_forever, args=(0.02,))
    thread.start()
    yield hub
    hub.shutdown()
    thread.join()
    hub.server_close()


def random_array(seed: int) -> np.ndarray:
    """Return an array too random to compress and too short to be split into chunks."""
    return np.random.default_rng(seed).integers(256, size=5000, dtype=np.uint8)


@pytest.fixture
def folder(tmp_path) -> Path:
    """Small copy of the project, with its own README and .gitignore and a file of each ignored kind."""
    folder = tmp_path / "project"
    for name in [*TEXT, *BINARY, *IGNORED, ".git/config"]:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).is_file() and name not in IGNORED:
            shutil.copy(ROOT / name, folder / name)
        else:
            (folder / name).write_bytes(random_array(len(name)).tobytes())
    save_file({"weight": random_array(0)}, folder / WEIGHTS)
    save_file({"moment": random_array(1)}, folder / "run.safetensors")
    return folder


def upload(hub: Hub, folder: Path, home: Path, **variables: str) -> None:
    """Run the commands of the guide that follow the login."""
    guide = (ROOT / "docs" / "deploy.md").read_text("utf-8")
    (commands,) = re.findall(r"^hf auth login\n((?:hf .+\n)+)", guide, re.MULTILINE)
    environment = {
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
        "HOME": str(home),
        "HF_HOME": str(home),
        "HF_ENDPOINT": hub.address,
        "HF_TOKEN": "hf_nobody",
        "HF_HUB_DISABLE_UPDATE_CHECK": "1",
    }
    run = subprocess.run(
        " && ".join(commands.splitlines()).replace("NAME", SPACE),
        shell=True,
        cwd=folder,
        env=environment | variables,
        capture_output=True,
        timeout=120,
    )
    assert run.returncode == 0, f"{(run.stdout + run.stderr).decode()}\nnot answered: {hub.unknown}"


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


@pytest.mark.exhaustive
@pytest.mark.parametrize("storage", ["xet", "lfs"])
def test_upload_commands_fill_a_space(hub, folder, tmp_path, storage):
    upload(hub, folder, tmp_path / "home", **({"HF_HUB_DISABLE_XET": "1"} if storage == "lfs" else {}))
    organization, name = SPACE.split("/")
    assert hub.created[0] == {"organization": organization, "name": name, "type": "space", "sdk": "gradio"}
    content = {name: (folder / name).read_bytes() for name in [*TEXT, *BINARY, *IGNORED]}
    # The commit has texts, and checksums of binary files; no ignored files, and no deletions.
    assert hub.committed == {name: content[name] for name in TEXT} | {name: sha256(content[name]) for name in BINARY}
    assert hub.other_operations == []
    if storage == "lfs":
        assert hub.stored == {sha256(content[name]): content[name] for name in BINARY}
    else:
        packed = b"".join(hub.xorbs)
        assert random_array(0).tobytes() in packed and random_array(1).tobytes() not in packed
        assert hub.stored == {}
    # The Hub sees name, size and first bytes of every file, even ignored ones, but not of .git.
    assert hub.requested_paths == {name: (len(content[name]), content[name][:512]) for name in content}


@pytest.mark.exhaustive
def test_git_detects_weights_as_binary():
    """No `.gitattributes` is needed for that, and one here would replace the Hub's own in the Space."""
    if not (listing := git(ROOT, "ls-files", "--eol", "--", "*.safetensors", "*.png") if shutil.which("git") else ""):
        pytest.skip("git lists no files here")
    assert [line for line in listing.splitlines() if not line.startswith("i/-text")] == []
    assert git(ROOT, "ls-files", "--", ".gitattributes", "**/.gitattributes") == ""
