"""The model of `explorer/web/static/in_browser/` run by Node, for many tasks at once."""

import json
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import playwright
import pytest

from explorer.web.assets import WEB

NODE = shutil.which("node", path=Path(playwright.__file__).parent / "driver")  # part of Playwright
MODULES = WEB / "static" / "in_browser"
TYPES = {"Float32Array": np.float32, "Float64Array": np.float64}


class Answers:
    """Results of one run of Node.

    Attributes:
        values: task key -> its result.
    """

    def __init__(self, folder: Path):
        self.values = json.loads((folder / "answers.json").read_text(encoding="utf-8"))
        self._bytes = np.memmap(folder / "arrays.bin", mode="r") if (folder / "arrays.bin").stat().st_size else b""

    def __getitem__(self, key: str) -> Any:
        return self.values[key]

    def array(self, entry: Mapping[str, Any], shape: tuple[int, ...] = (-1,)) -> np.ndarray:
        """Return the array that an entry of the results describes."""
        dtype = TYPES[entry["type"]]
        return np.frombuffer(self._bytes, dtype, entry["length"], entry["offset"]).reshape(shape)


def run_node_tasks(questions: Mapping[str, Mapping[str, Any]], folder: Path) -> Answers:
    """Run Node once for all tasks: key -> task and its arguments (run_in_node.mjs)."""
    if NODE is None:
        pytest.skip("needs Node, which Playwright brings: pip install -r tests/requirements.txt")
    (folder / "questions.json").write_text(json.dumps(questions), encoding="utf-8")
    command = [NODE, Path(__file__).parent / "run_in_node.mjs", MODULES, folder / "questions.json", folder]
    run = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=600)
    assert run.returncode == 0, run.stdout + run.stderr
    return Answers(folder)
