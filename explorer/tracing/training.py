"""How a model came about: when on the way it was kept, and what its training wrote."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from explorer.state.series import model_of, series_of, step_of

RECORD, MOST_RECORD_BYTES = "training.jsonl", 16 << 20


@dataclass(frozen=True, eq=False)
class Training:
    """A model's.

    Attributes:
        checkpoint: name of the model as it is here.
        snapshots: step -> name of the checkpoint that was kept after it, by step; none of a model that was kept once.
        record: what training wrote, name -> (N,) float64, one number an evaluation, NaN where a line lacks it; where
            there is anything, "step" is among them.
    """

    checkpoint: str
    snapshots: Mapping[int, str]
    record: Mapping[str, np.ndarray]

    @property
    def step(self) -> int | None:
        """After which the model here was kept; None where its name does not say."""
        return step_of(self.checkpoint)

    @property
    def model(self) -> str:
        """The name of all that this training made."""
        return model_of(self.checkpoint)

    def nearest(self, step: float) -> str:
        """Of the checkpoints kept on the way the one nearest to a step, by how many times as far it is; "" for none.

        0 counts as 1/2, as on the page's axes of steps.
        """
        return min(self.snapshots.items(), key=lambda kept: abs(place_of(kept[0]) - place_of(step)), default=(0, ""))[1]


def place_of(step: float) -> float:
    """Where a step stands on a logarithmic axis: log₂ of it, 0 one before 1."""
    return float(np.log2(max(step, 0.5)))


def training_of(checkpoint: str, checkpoints: Sequence[str], folder: Path) -> Training:
    """What is known of a checkpoint's; of files that are missing or damaged, nothing.

    Args:
        checkpoints: names of all that there are.
        folder: the checkpoint's.
    """
    snapshots = {step: name for name in series_of(checkpoint, checkpoints) if (step := step_of(name)) is not None}
    record = recorded(folder) or (recorded(folder.parent) if model_of(checkpoint) != checkpoint else {})
    return Training(checkpoint, snapshots if len(snapshots) > 1 else {}, record)


def recorded(folder: Path) -> dict[str, np.ndarray]:
    """The numbers of a folder's `training.jsonl`, by step."""
    rows = rows_of(folder / RECORD)
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: np.array([row.get(name, np.nan) for row in rows]) for name in names}


def rows_of(path: Path) -> list[dict[str, float]]:
    """Each line's numbers by name; lines that have no step or are no JSON are left out."""
    try:
        if not path.is_file() or path.stat().st_size > MOST_RECORD_BYTES:
            return []
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
    rows = (numbers_of(line) for line in lines)
    return sorted((row for row in rows if row.get("step", -1) >= 0), key=lambda row: row["step"])


def numbers_of(line: str) -> dict[str, float]:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    if not isinstance(row, dict):
        return {}
    return {name: float(value) for name, value in row.items() if type(value) in (int, float) and abs(value) < 1e300}
