"""The README's lines that make catalogues."""

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
    """`pybabel("init", folder, "-l", "eo")` runs the README's line in a folder; of two options the last counts."""
    text = (ROOT / "explorer" / "README.md").read_text(encoding="utf-8")

    def run(command: str, folder: Path, *more: str):
        (line,) = re.findall(rf"^pybabel {command} .+", text, re.M)
        asked = [sys.executable, "-m", "babel.messages.frontend", *shlex.split(line)[1:], *more]
        done = subprocess.run(asked, cwd=folder, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr

    return run
