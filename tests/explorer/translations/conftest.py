"""The commands of CONTRIBUTING.md that make catalogues, and the template of messages."""

import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="session")
def pybabel() -> Callable[..., None]:
    """Function that runs a command of CONTRIBUTING.md in a folder: `pybabel("init", folder, "-l", "eo")`.

    If an option occurs twice, the last one counts.
    """
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")

    def run_command(command: str, folder: Path, *more: str):
        (line,) = re.findall(rf"^pybabel {command} .+", text, re.M)
        command_line = [sys.executable, "-m", "babel.messages.frontend", *shlex.split(line)[1:], *more]
        done = subprocess.run(command_line, cwd=folder, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr

    return run_command


@pytest.fixture(scope="session")
def template(pybabel, tmp_path_factory) -> Path:
    """The template: all messages of the code."""
    path = tmp_path_factory.mktemp("messages") / "explorer.pot"
    pybabel("extract", ROOT, "-o", str(path))
    return path
