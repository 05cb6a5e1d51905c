"""The package: a wheel of the repository, installed in a fresh environment and used from an empty folder."""

import json
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import time
import venv
import zipfile
from pathlib import Path

import httpx
import pytest

import explorer
from tests.benchmarks.app_server import free_port

ROOT = Path(__file__).parent.parent
MAX_WHEEL_BYTES = 15_000_000
SOURCES = ("explorer", "model", "checkpoints", "setup.py", "pyproject.toml", "requirements.txt", "README.md", "LICENSE")
UNUSED_SUFFIXES = {".po", ".ts"}  # sources of translators and of the type checker
USAGE_SCRIPT = """
import explorer, model
run = explorer.load("llama-fables").run("Once upon a time")
assert run.figure("attention").to_plotly_json()["data"] and run.tokens[0] == "Once"
lm, tokenizer = model.load_checkpoint("llama-fables-gpt")
print(explorer.__version__, *model.list_checkpoints())
"""

pytestmark = pytest.mark.exhaustive  # half a minute of CPU time per worker


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("source")  # a build writes into its source folder
    for name in SOURCES:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__", "*.pyi"))
        else:
            shutil.copy(ROOT / name, folder / name)
    offline = ["--no-build-isolation", "--no-deps", "--no-index", "--quiet"]
    subprocess.run([sys.executable, "-m", "pip", "wheel", *offline, "--wheel-dir", folder, folder], check=True)
    (path,) = folder.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def environment(wheel, tmp_path_factory) -> Path:
    """A fresh environment with the wheel, which finds other packages in the current environment."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=False, symlinks=True)
    packages = sysconfig.get_path("purelib", vars={"base": str(folder), "platbase": str(folder)})
    Path(packages, "present.pth").write_text(sysconfig.get_path("purelib"), "utf-8")
    pip = [sys.executable, "-m", "pip", "--python", folder / "bin" / "python", "install"]
    subprocess.run([*pip, "--no-deps", "--no-index", "--quiet", "--no-compile", wheel], check=True)
    return folder / "bin"


@pytest.fixture
def empty_folder(tmp_path, monkeypatch) -> Path:
    """An empty folder to work in, without any path to the repository."""
    for name in ("PYTHONPATH", "PYTHONHOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_wheel_is_small_and_complete(wheel):
    assert wheel.stat().st_size <= MAX_WHEEL_BYTES
    names = set(zipfile.ZipFile(wheel).namelist())
    sources = {
        path.relative_to(ROOT).as_posix()
        for folder in ("explorer", "model")
        for path in (ROOT / folder).rglob("*")
        if path.is_file() and path.suffix not in {".pyc", ".pyi", ".pot", *UNUSED_SUFFIXES}
    }
    assert sources - names == set()
    assert {name.split("/")[0] for name in names} == {"explorer", "model", wheel.name.split("-py3")[0] + ".dist-info"}
    assert not [name for name in names if "snapshots" in name]


def test_installed_package_works_from_an_empty_folder(environment, empty_folder):
    result = subprocess.run([environment / "python", "-c", USAGE_SCRIPT], capture_output=True, text=True)
    assert result.stdout.split() == [explorer.__version__, "llama-fables", "llama-fables-gpt"], result.stderr
    version = subprocess.run([environment / "transformerlm-explorer", "--version"], capture_output=True, text=True)
    assert version.stdout.strip() == f"transformerlm-explorer {explorer.__version__}"


def test_command_serves_bundled_model(environment, empty_folder):
    port = free_port()
    command = [environment / "transformerlm-explorer", "--port", str(port)]
    server = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=os.environ | {"PYTHONUNBUFFERED": "1"}
    )
    try:
        assert server.stdout.readline().strip() == f"Running on local URL: http://127.0.0.1:{port}/"
        client = httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60)
        (number,) = (
            entry["id"] for entry in client.get("/config").json()["dependencies"] if entry["api_name"] == "explore"
        )
        question = {"fn_index": number, "data": ["the fox", ""], "session_hash": "a"}
        client.post("/gradio_api/queue/join", json=question).raise_for_status()
        with client.stream("GET", "/gradio_api/queue/data", params={"session_hash": "a"}) as events:
            messages = [json.loads(line[6:]) for line in events.iter_lines() if line.startswith("data: ")]
        (answer,) = (entry["output"]["data"][0] for entry in messages if entry["msg"] == "process_completed")
        assert "".join(answer["tokens"]) == "the fox"
        health = client.get("/health").json()
        assert health["models"] == ["llama-fables"] and health["version"].startswith(explorer.__version__)
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait(timeout=60)
    assert list(empty_folder.iterdir()) == []


def test_import_loads_no_dependencies(environment, empty_folder):
    began = time.monotonic()
    code = "import sys, explorer; print(*{'torch', 'numpy', 'gradio', 'plotly'} & set(sys.modules), len(dir(explorer)))"
    result = subprocess.run([environment / "python", "-c", code], capture_output=True, text=True)
    assert result.stdout.split() == [str(len(dir(explorer)))], result.stderr
    assert time.monotonic() - began < 10
