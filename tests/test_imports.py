"""Import contracts of pyproject.toml: they hold, and each detects a violation."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
LINT = "import sys; from importlinter.cli import lint_imports_command; sys.exit(lint_imports_command())"


def lint(folder: Path) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, "-c", LINT, "--no-cache"], cwd=folder, capture_output=True, text=True)


def test_the_contracts_hold():
    result = lint(ROOT)
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("model/planted.py", "from explorer.tracing.trace import Trace"),
        ("model/planted.py", "import gradio"),
        ("explorer/translations/planted.py", "from explorer.state.run import Run"),
        ("explorer/state/planted.py", "from explorer.tracing.trace import Trace"),
        ("explorer/analysis/planted.py", "def f():\n    from explorer.views.attention import VIEW"),
        ("explorer/tracing/planted.py", "import gradio.themes"),
        ("explorer/explain/planted.py", "from explorer.tracing.library import Library"),
        ("explorer/views/planted.py", "import torch"),
        ("explorer/views/attention/planted.py", "from explorer.views.residual import VIEW"),
        ("explorer/lessons/planted.py", "from explorer.web.page import Page"),
        ("explorer/architecture/planted.py", "from explorer.tracing.trace import Trace"),
        ("explorer/analysis/planted.py", "import plotly.graph_objects"),
        ("explorer/web/actions/run_factory.py", "import gradio"),
        ("explorer/web/planted.py", "import app"),
        ("explorer/views/style.py", "from explorer.views.attention import VIEW"),
        ("explorer/views/planted/__init__.py", "from explorer.views.attention import VIEW"),
        ("explorer/planted.py", ""),
    ],
)
def test_a_planted_violation_is_found(tmp_path, path, line):
    """`explain` may import what is in `tracing`, but not what needs torch there."""
    for name in ("model", "explorer"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__", "*.pyi"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    planted = tmp_path / path
    planted.parent.mkdir(exist_ok=True)
    planted.write_text(line + "\n", encoding="utf-8")
    result = lint(tmp_path)
    assert result.returncode != 0 and planted.stem.replace("__init__", "planted") in result.stdout
