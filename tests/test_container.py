"""App in an environment with only temporary files writable and no network, as in a container or on a Space.

Also checks the files that start it there: Dockerfile and front matter.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest
from huggingface_hub import SpaceCardData

from explorer.cli_options import is_public, parse_arguments
from tests.benchmarks.app_server import free_port

ROOT = Path(__file__).parent.parent
# Refuse the audit events that a read-only file system or a machine without network would refuse.
CONFINED = """
import os, sys, tempfile
WRITES = {"os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.link", "os.symlink", "os.truncate"}
ALLOWED = tuple(map(os.path.realpath, (os.environ["TMPDIR"], "/dev", "/proc/self")))
def is_elsewhere(path):
    if not isinstance(path, (str, bytes, os.PathLike)):
        return False
    return not os.path.realpath(os.fsdecode(path)).startswith(ALLOWED)
def refuse(event, given):
    writes = event == "open" and isinstance(given[2], int) and given[2] & (os.O_WRONLY | os.O_RDWR)
    if writes and is_elsewhere(given[0]):
        raise PermissionError(30, "Read-only file system", given[0])
    if event in WRITES and is_elsewhere(given[0]):
        raise PermissionError(30, "Read-only file system", given[0])
    if event == "socket.connect" and isinstance(given[1], tuple) and given[1][0] not in ("127.0.0.1", "::1"):
        with open(os.path.join(os.environ["TMPDIR"], "asked-elsewhere"), "a") as file:
            print(given[1], file=file)
        raise OSError(101, "Network is unreachable")
sys.addaudithook(refuse)
"""


@pytest.fixture
def confined_env(tmp_path):
    """Environment of a process that may only write to a temporary folder and reach no network."""
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(CONFINED, "utf-8")
    (tmp_path / "tmp").mkdir()
    (tmp_path / "tmp").chmod(0o777)  # like /tmp
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("GRADIO_", "HF_", "SPACE_"))}
    return inherited | {
        "PYTHONPATH": str(tmp_path / "site"),
        "PYTHONDONTWRITEBYTECODE": "1",
        "TMPDIR": str(tmp_path / "tmp"),
        "HOME": "/proc/nowhere",
        "HF_HOME": "/proc/nowhere/hf",
    }


def image_user_command() -> list[str]:
    """Return the start of a command that runs as the user of a Space and of the image.

    The user owns nothing here and may read everything, as an image's files can be read.
    Skips the test if it is not run by root.
    """
    if os.getuid() != 0 or not (setpriv := shutil.which("setpriv")):
        pytest.skip("needs to be root, with setpriv: apt-get install util-linux")
    (user,) = (value for name, value in instructions() if name == "USER")
    capabilities = [f"--{capability_set}-caps=-all,+dac_read_search" for capability_set in ("inh", "ambient")]
    return [
        setpriv,
        "--reuid",
        user,
        "--regid",
        user,
        "--clear-groups",
        *capabilities,
        "--bounding-set=-all,+dac_read_search",
    ]


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("port_is_in", "starting"),
    [("GRADIO_SERVER_PORT", list), ("PORT", image_user_command)],
    ids=["current user", "image user"],
)
def test_app_serves_read_only_and_without_network(confined_env, port_is_in, starting):
    assert_serves(confined_env, port_is_in, [*starting(), sys.executable, "app.py"])


@pytest.mark.exhaustive
def test_space_serves_with_its_requirements(confined_env, tmp_path):
    """In a new environment like the Hub's, except for its PyTorch index; as the Space's user."""
    start, python = image_user_command(), tmp_path / "environment" / "bin" / "python"
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "environment"], check=True)
    subprocess.run([python, "-m", "pip", "install", "--quiet", "-r", ROOT / "requirements.txt"], check=True)
    assert_serves(confined_env, "PORT", [*start, str(python), "app.py"])


def assert_serves(confined_env: dict[str, str], port_is_in: str, command: list[str]):
    """Assert that a command starts the app in the confined environment, and that the app answers."""
    port = str(free_port())
    environment = confined_env | {port_is_in: port, "SPACE_ID": "somebody/explorer", "GRADIO_ROOT_PATH": "/below"}
    environment["GRADIO_SERVER_NAME"] = "0.0.0.0"
    server = subprocess.Popen(command, cwd=ROOT, env=environment, stderr=subprocess.PIPE, text=True)
    try:
        address, end = f"http://127.0.0.1:{port}/", time.monotonic() + 120
        while True:
            assert server.poll() is None, server.stderr.read()
            assert time.monotonic() < end
            try:
                config = httpx.get(f"{address}config").json()
                break
            except httpx.TransportError:
                time.sleep(0.2)
        assert config["root"].endswith("/below")
        assert "window.gradio_config" in httpx.get(address).text
        (explore,) = (entry["id"] for entry in config["dependencies"] if entry["api_name"] == "explore")
        request_json = {"fn_index": explore, "data": ["the fox", ""], "session_hash": "a"}
        httpx.post(f"{address}gradio_api/queue/join", json=request_json).raise_for_status()
        with httpx.stream("GET", f"{address}gradio_api/queue/data", params={"session_hash": "a"}, timeout=60) as events:
            messages = [json.loads(line[6:]) for line in events.iter_lines() if line.startswith("data: ")]
        (answer,) = (entry["output"]["data"][0] for entry in messages if entry["msg"] == "process_completed")
        assert "".join(answer["tokens"]) == "the fox"
        script = re.search(r'explorer/static/[^"\\]+page\.js', httpx.get(address).text)[0]
        assert httpx.get(address + script).status_code == 200
        assert httpx.get(f"{address}health").json()["models"] == ["llama-fables"]
        assert not Path(confined_env["TMPDIR"], "asked-elsewhere").exists()
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait(timeout=60)


def test_image_user_reads_all_and_writes_nothing():
    command = [*image_user_command(), sys.executable, "-c"]

    def status(python: str) -> str:
        return subprocess.run([*command, python], capture_output=True, text=True, cwd=ROOT).stderr

    assert status("import os; open('app.py'); assert os.getuid() == 1000") == ""
    assert "Permission denied" in status("open('new', 'w')")


def test_confinement_works(confined_env, tmp_path):
    def status(command: str) -> str:
        python_command = [sys.executable, "-c", command]
        run = subprocess.run(python_command, env=confined_env, capture_output=True, text=True, cwd=tmp_path)
        return run.stderr.strip().rpartition("\n")[2]

    assert "Read-only" in status(f"open({str(ROOT / 'new')!r}, 'w')")
    assert "Read-only" in status(f"import os; os.mkdir({str(ROOT / 'new')!r})")
    assert "unreachable" in status("import socket; socket.create_connection(('192.0.2.1', 80))")
    assert status(f"open({confined_env['TMPDIR'] + '/new'!r}, 'w')") == ""


def test_hub_knows_front_matter_keys():
    """Allowed keys are those of the Hub's client and of its documentation (Spaces configuration reference)."""
    front_matter = (ROOT / "README.md").read_text("utf-8").split("---\n")[1]
    keys = re.findall(r"^(\w+):", front_matter, re.MULTILINE)
    client_keys = {name for name in vars(SpaceCardData(title="")) if not name.startswith("_")}
    documented = {"emoji", "colorFrom", "colorTo", "fullWidth", "pinned", "short_description"}
    assert set(keys) <= client_keys | documented
    values = dict(re.findall(r"^(\w+): (.+)$", front_matter, re.MULTILINE))
    colours = {"red", "yellow", "green", "blue", "indigo", "purple", "pink", "gray"}
    assert {values["colorFrom"], values["colorTo"]} <= colours and len(values["short_description"]) <= 60
    assert (ROOT / values["app_file"]).is_file() and values["sdk"] == "gradio"
    required = re.search(r"^gradio==(\d+\.\d+)", (ROOT / "requirements.txt").read_text("utf-8"), re.MULTILINE)[1]
    assert values["sdk_version"].startswith(f"{required}.")


def instructions() -> list[tuple[str, str]]:
    text = (ROOT / "Dockerfile").read_text("utf-8").replace("\\\n", " ")
    return [tuple(line.split(maxsplit=1)) for line in text.splitlines() if line and not line.startswith("#")]


def test_dockerfile_is_valid():
    dockerfile_lines = instructions()
    assert [name for name, _value in dockerfile_lines] == [
        *("FROM", "WORKDIR", "COPY", "RUN", "COPY", "USER", "ENV", "EXPOSE", "HEALTHCHECK", "ENTRYPOINT", "CMD")
    ]
    values = dict(dockerfile_lines)
    command = json.loads(values["ENTRYPOINT"]) + json.loads(values["CMD"])
    assert command[0] == "python" and (ROOT / command[1]).is_file()
    assert is_public(parse_arguments(command[2:]))
    assert values["USER"] == "1000" and "GRADIO_SERVER_NAME=0.0.0.0" in values["ENV"]
    (torch,) = re.findall(r'"(torch==[^"]+)"', values["RUN"])
    assert torch in (ROOT / "requirements.txt").read_text("utf-8").splitlines()
    assert "whl/cpu" in values["RUN"]


@pytest.mark.exhaustive
def test_image_starts_and_answers():
    engine = shutil.which("docker") or shutil.which("podman")
    if not engine or subprocess.run([engine, "image", "inspect", "explorer"], capture_output=True).returncode:
        pytest.skip("needs the image: docker build -t explorer .")
    port = free_port()
    start = [engine, "run", "--rm", "--detach", "--read-only", "--tmpfs", "/tmp", "-p", f"127.0.0.1:{port}:7860"]
    container = subprocess.run([*start, "explorer"], check=True, capture_output=True, text=True).stdout.strip()
    try:
        address, end = f"http://127.0.0.1:{port}/", time.monotonic() + 120
        while True:
            try:
                health = httpx.get(f"{address}health").raise_for_status().json()
                break
            except httpx.HTTPError:
                assert time.monotonic() < end
                time.sleep(0.5)
        assert health["models"] == ["llama-fables"]
        assert "window.gradio_config" in httpx.get(address).text
    finally:
        subprocess.run([engine, "kill", container], check=True, capture_output=True)


def test_dockerignore_keeps_needed_files():
    ignored = (ROOT / ".dockerignore").read_text("utf-8").split()
    needed = {"app.py", "explorer", "model", "checkpoints", "requirements.txt", "LICENSE", "README.md"}
    assert not needed & set(ignored) and all((ROOT / name).exists() for name in needed)


@pytest.mark.exhaustive
def test_image_healthcheck_works(tmp_path):
    (check,) = (value for name, value in instructions() if name == "HEALTHCHECK")
    command = json.loads(check[check.index("[") :])
    (tmp_path / "health").write_text("{}", "utf-8")
    port = str(free_port())
    server = subprocess.Popen([sys.executable, "-m", "http.server", port, "--bind", "127.0.0.1"], cwd=tmp_path)
    try:
        end = time.monotonic() + 30
        asking = [sys.executable, *command[1:]]
        while subprocess.run(asking, env=os.environ | {"PORT": port}, capture_output=True).returncode:
            assert time.monotonic() < end
    finally:
        server.terminate()
        server.wait()
    assert subprocess.run(asking, env=os.environ | {"PORT": port}, capture_output=True).returncode != 0


def test_space_and_image_install_their_requirements():
    """The files share no line: users with a GPU or a mirror install only the second."""
    first = (ROOT / "pre-requirements.txt").read_text("utf-8").splitlines()
    assert [line for line in first if not line.startswith("#")] == [
        "--index-url https://download.pytorch.org/whl/cpu",
        *(line for line in (ROOT / "requirements.txt").read_text("utf-8").splitlines() if line.startswith("torch")),
    ]
    assert "index-url" not in (ROOT / "requirements.txt").read_text("utf-8")
    run = dict(instructions())["RUN"]
    assert all(line in run for line in first[-2:]) and "-r requirements.txt" in run
    (redis,) = re.findall(r'"(redis==[^"]+)"', run)
    assert redis in (ROOT / "tests" / "requirements.txt").read_text("utf-8").splitlines()
