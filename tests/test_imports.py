"""Import contracts of pyproject.toml: they hold, and each detects a violation."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
LINT = "import sys; from importlinter.cli import lint_imports_command; sys.exit(lint_imports_command())"


def lint(folder: Path) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, "-c", LINT, "--no-cache"], cwd=folder, capture_output=True, text=True)


def test_import_contracts_hold():
    result = lint(ROOT)
    assert result.returncode == 0, result.stdout + result.stderr


VIOLATIONS = [
    ("model/planted_a.py", "from explorer.tracing.trace import Trace"),
    ("model/planted_b.py", "import gradio"),
    ("explorer/translations/planted_c.py", "from explorer.state.page_state import RunRequest"),
    ("explorer/state/planted_d.py", "from explorer.tracing.trace import Trace"),
    ("explorer/analysis/planted_e.py", "def f():\n    from explorer.views.attention import VIEW"),
    ("explorer/tracing/planted_f.py", "import gradio.themes"),
    ("explorer/explain/planted_g.py", "import torch.nn"),
    ("explorer/views/planted_h.py", "import torch"),
    ("explorer/views/attention/planted_i.py", "from explorer.views.residual import VIEW"),
    ("explorer/lessons/planted_j.py", "from explorer.web.page import Page"),
    ("explorer/architecture/planted_k.py", "from explorer.tracing.trace import Trace"),
    ("explorer/analysis/planted_l.py", "import plotly.graph_objects"),
    ("explorer/web/actions/page_state_builder.py", "import gradio"),
    ("explorer/web/planted_n.py", "import app"),
    ("explorer/views/style.py", "from explorer.views.attention import VIEW"),
    ("explorer/views/planted_p/__init__.py", "from explorer.views.attention import VIEW"),
    ("explorer/planted_q.py", ""),
]
CIRCLE = ("explorer/state/token_alignment.py", "from explorer.state.page_state import RunRequest")


@pytest.mark.exhaustive
def test_planted_violations_are_found(tmp_path):
    for name in ("model", "explorer"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__", "*.pyi"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    for path, line in [*VIOLATIONS, CIRCLE]:
        planted = tmp_path / path
        planted.parent.mkdir(exist_ok=True)
        planted.write_text(line + "\n", encoding="utf-8")
    result = lint(tmp_path)
    assert result.returncode != 0
    missed = [(path, line) for path, line in VIOLATIONS if import_text(path, line) not in result.stdout]
    assert missed == [], result.stdout
    assert "No cycles are allowed in explorer.state." in result.stdout


def import_text(path: str, line: str) -> str:
    """Return an import as the contracts report it: of other packages, only the package's name."""
    module = path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    if not (target := re.search(r"(?:from|import) (\S+)", line)):
        return module
    return f"{module} -> {target[1] if target[1].startswith('explorer.') else target[1].partition('.')[0]} (l."
