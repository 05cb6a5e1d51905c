"""Imports point one way: app -> page -> views, components, library -> capture, trace, analysis, … -> model."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
# The longest prefix of a module's name decides its layer; a module may import from its own layer and those below.
LAYERS = {
    "model": 0,
    "explorer": 1,
    "explorer.views": 2,
    "explorer.components": 2,
    "explorer.tracing.library": 2,
    "explorer.web.open_view": 3,
    "explorer.web.presenter": 3,
    "explorer.tracing.logits_cache": 3,
    "explorer.web.api": 4,
    "explorer.web.endpoints": 4,
    "explorer.web.continuations": 4,
    "explorer.state.tree_commands": 4,
    "explorer.web.other_model": 4,
    "explorer.web.layout": 4,
    "explorer.web.sampling_panel": 4,
    "explorer.web.writing_panel": 4,
    "explorer.web.toasts": 4,
    "explorer.web.telling": 2,
    "explorer.web.server_functions": 3,
    "explorer.web.generation_events": 5,
    "explorer.web.events": 5,
    "explorer.web.page": 6,
    "app": 7,
}
MAY_IMPORT_GRADIO = (
    "app",
    "explorer.web.page",
    "explorer.web.layout",
    "explorer.web.sampling_panel",
    "explorer.web.writing_panel",
    "explorer.web.events",
    "explorer.web.generation_events",
    "explorer.web.toasts",
    "explorer.web.server_functions",
    "explorer.components",
)


def project_sources() -> dict[str, str]:
    """Module name -> source, of everything but the tests."""
    paths = [ROOT / "app.py", *(ROOT / "explorer").rglob("*.py"), *(ROOT / "model").rglob("*.py")]
    return {
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path.read_text("utf-8")
        for path in paths
        if path.exists()
    }


def prefix(name: str, names) -> str | None:
    """The longest of `names` that is `name` or a package around it."""
    return max((n for n in names if name == n or name.startswith(n + ".")), key=len, default=None)


def imported_names(source: str) -> list[str]:
    """Dotted names of all imports, wherever they stand; a relative one starts with its dots."""
    names = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names += ["." * node.level + f"{node.module or ''}.{alias.name}" for alias in node.names]
    return names


def reached_names(module: str, sources: dict[str, str]) -> set[str]:
    """What the module imports, directly or through other modules of the project."""
    names, seen, waiting = set(), set(), [module]
    while waiting:
        seen.add(current := waiting.pop())
        imported = imported_names(sources[current])
        names.update(imported)
        waiting += {prefix(name, sources) for name in imported} - seen - {None}
    return names


def violations(sources: dict[str, str]) -> list[str]:
    """One sentence for each import that breaks the rules."""
    found = []
    for module, source in sources.items():
        layer = LAYERS[prefix(module, LAYERS)]
        for name in imported_names(source):
            if name.startswith("."):
                found.append(f"{module} imports {name} relatively")
            elif (target := prefix(name, LAYERS)) and LAYERS[target] > layer:
                found.append(f"{module} imports {name}, which lies above it")
            elif prefix(name, ["gradio"]) and not prefix(module, MAY_IMPORT_GRADIO):
                found.append(f"{module} imports {name}: only the page and its components know Gradio")
        if prefix(module, ["explorer.views"]):
            reached = reached_names(module, sources)
            if heavy := sorted(name for name in reached if prefix(name, ["torch", "gradio"])):
                found.append(f"{module} is a view, which needs only numpy and plotly, but reaches {heavy[0]}")
    return found


def test_imports_point_one_way():
    assert violations(project_sources()) == []


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("model.planted", "from explorer.tracing.trace import Trace"),
        ("model.planted", "import explorer"),
        ("model.planted", "import gradio"),
        ("explorer.trace_planted", "from explorer.views.attention import VIEW"),
        ("explorer.tracing.capture", "def f():\n    from explorer import page"),
        ("explorer.analysis.planted", "import explorer.tracing.library as library"),
        ("explorer.analysis.planted", "from gradio import HTML"),
        ("explorer.tracing.library", "import gradio.themes"),
        ("explorer.components.planted", "from explorer.web.page import build"),
        ("explorer.web.page", "import app"),
        ("explorer.views.planted", "import torch"),
        ("explorer.views.planted", "from torch.nn import functional"),
        ("explorer.views.planted", "from explorer.tracing.library import Library"),
        ("explorer.views.planted", "from . import attention"),
    ],
)
def test_a_planted_violation_is_found(module, source):
    sources = {"explorer.tracing.library": "import torch", "explorer.web.page": "import gradio", "app": ""} | {
        module: source
    }
    assert [sentence for sentence in violations(sources) if sentence.startswith(module)]


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("model.planted", "import torch\nfrom model.tap import Tap"),
        ("explorer.tracing.capture", "import torch\nfrom explorer.tracing.trace import Trace"),
        ("explorer.views.planted", "import numpy, plotly\nfrom explorer.analysis import rope"),
        ("explorer.views.planted", "import torchlike, gradio_like"),
        ("explorer.components.planted", "import gradio as gr\nfrom explorer.views.style import LIGHT"),
        ("explorer.web.page", "import gradio as gr\nfrom explorer.views import VIEWS\nfrom model import generate"),
        ("app", "import gradio\nfrom explorer.web.page import build"),
    ],
)
def test_what_the_rules_allow_passes(module, source):
    assert violations({module: source}) == []
