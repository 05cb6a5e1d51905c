"""Python code of the documents and the notebook runs."""

import json
import re
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
MAX_BYTES = 15_000
BLOCK = re.compile(
    r"(?:<!-- not run: (?P<why>[^\n]+) -->\n)?^(?P<indent> *)```python\n(?P<code>.*?)^ *```$", re.M | re.S
)
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
NOTEBOOK = ROOT / "docs" / "tour.ipynb"
NOT_RUN = {
    "docs/deploy.md": ["asks a running app"],
    "docs/models.md": ["it needs a downloaded file"],
    "docs/python.md": ["serves the page"],
}
NUM_CELLS = 10


def read_blocks(path: Path) -> list[tuple[str, str | None]]:
    """Return the Python blocks of a document, each with the reason why it is not run; None for none."""
    return [(textwrap.dedent(match["code"]), match["why"]) for match in BLOCK.finditer(path.read_text("utf-8"))]


def run_code(sources: list[str], name: str, monkeypatch: pytest.MonkeyPatch, folder: Path) -> dict:
    """Run pieces of code in one namespace, in an empty folder; return the namespace."""
    import plotly.basedatatypes

    monkeypatch.chdir(folder)  # for files that the code writes
    monkeypatch.syspath_prepend(ROOT)
    monkeypatch.setattr(plotly.basedatatypes.BaseFigure, "show", lambda figure: figure.to_dict())
    namespace = {"__name__": "__main__"}
    for number, source in enumerate(sources, 1):
        exec(compile(source, f"{name}, block {number}", "exec"), namespace)
    return namespace


DOCUMENTS_WITH_CODE = [path.relative_to(ROOT).as_posix() for path in DOCUMENTS if read_blocks(path)]


@pytest.mark.parametrize("name", DOCUMENTS_WITH_CODE)
def test_document_code_runs(name, monkeypatch, tmp_path):
    sources = [code for code, why in read_blocks(ROOT / name) if why is None]
    run_code(sources, name, monkeypatch, tmp_path)


def test_only_listed_blocks_are_not_run():
    reasons = {name: [why for _code, why in read_blocks(ROOT / name) if why] for name in DOCUMENTS_WITH_CODE}
    assert {name: texts for name, texts in reasons.items() if texts} == NOT_RUN


def test_blocks_are_found_with_their_reasons(tmp_path):
    path = tmp_path / "a.md"
    path.write_text(
        "```python\na = 1\n```\n- b\n  ```python\n  b = 2\n  ```\n<!-- not run: c -->\n```python\nc\n```\n", "utf-8"
    )
    assert read_blocks(path) == [("a = 1\n", None), ("b = 2\n", None), ("c\n", "c")]


@pytest.mark.parametrize("name", ["python.md", "cli.md"])
def test_guide_is_short(name):
    assert (ROOT / "docs" / name).stat().st_size <= MAX_BYTES


def test_notebook_runs(monkeypatch, tmp_path):
    notebook = json.loads(NOTEBOOK.read_text("utf-8"))
    assert notebook["nbformat"] == 4 and len(notebook["cells"]) == NUM_CELLS
    assert all(not cell.get("outputs") for cell in notebook["cells"])
    sources = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert '"git", "clone"' in sources[0]  # all that it needs
    namespace = run_code(sources, NOTEBOOK.name, monkeypatch, tmp_path)
    before, after = namespace["probability"](namespace["run"]), namespace["probability"](namespace["ablated"])
    assert before > 0.7 and after < 0.1
    assert namespace["effects"].max() == namespace["effects"][0, 4]
    assert namespace["run"]["blocks.4.attn.pattern"][3, -1].argmax() == namespace["run"].tokens.index(" bird")
