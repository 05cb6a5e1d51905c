"""Translation of all texts: a language in which every message is in ⟦brackets⟧, made as CONTRIBUTING.md says.

Text outside of brackets was not marked for translation.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from babel.messages.pofile import read_po, write_po

from explorer.translations import CATALOGUES

ROOT = CATALOGUES.parents[1]
SCRIPT = Path(__file__).with_name("print_texts.py")
PSEUDO = "eo"  # a language with two plural forms, like English
NAMES = re.compile(
    r"TransformerLM Explorer|English|Español|简体中文|llama-fables(-\w+)?(/step-\d+)?"
    r"|RMSNorm|LayerNorm|RoPE|SwiGLU|ReLU|SiLU|GELU|GeGLU|RMS|PCA|KL|cpu"
    r"|Ctrl K|√\(var \+ ε\)|log₂|\bln\b|\bvar\b|\bup\b|\b[a-z]+_[a-z]+\b"  # of code and formulas
    r"|\u2068[^\u2069]*\u2069|^[\da-f]{2}(?: [\da-f]{2})*(?: …)?$"  # tokens, and the bytes of one
    r"|%\{[\w.]+(?::[^}]+)?\}|<br>|<extra></extra>|</?span[^>]*>|&lt;|^chip$"  # Plotly's, and a name of annotations
)


@pytest.fixture
def folder(tmp_path, pybabel) -> Path:
    """Copy of the explorer with the bracketed language."""
    for name in ("explorer", "model"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__", "*.pyi"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    (tmp_path / "checkpoints").symlink_to(ROOT / "checkpoints")
    pybabel("extract", tmp_path)
    pybabel("init", tmp_path, "-l", PSEUDO)
    path = tmp_path / "explorer" / "translations" / PSEUDO / "LC_MESSAGES" / "explorer.po"
    with path.open("rb") as file:
        catalogue = read_po(file)
    for message in catalogue:
        if message.id:
            plural = isinstance(message.id, tuple)
            message.string = tuple(map(add_brackets, message.id)) if plural else add_brackets(message.id)
    with path.open("wb") as file:
        write_po(file, catalogue)
    pybabel("compile", tmp_path)
    return tmp_path


def add_brackets(message: str) -> str:
    return f"⟦{message}⟧"


@pytest.fixture
def printed_texts(folder) -> list[tuple[str, str]]:
    """Pairs (location, text) printed by a process in the bracketed language."""
    environment = os.environ | {"PYTHONPATH": str(folder), "GRADIO_ANALYTICS_ENABLED": "False"}
    done = subprocess.run([sys.executable, SCRIPT, PSEUDO], cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return [(location, text) for location, text in json.loads(done.stdout)]


def outside_brackets(text: str) -> str:
    """Return the text outside of brackets; values in a message have brackets of their own."""
    while text != (text := re.sub("⟦[^⟦⟧]*⟧", "", text)):
        pass
    return text


@pytest.mark.exhaustive  # texts of all models
def test_all_page_texts_are_translated(printed_texts):
    assert len({location for location, text in printed_texts if "⟦" in text}) > 50
    english = [
        (location, text)
        for location, text in printed_texts
        if re.search(r"[^\W\d_]{2}", outside_brackets(NAMES.sub("", text)))
    ]
    assert english == [], "\n".join(map(str, english))
