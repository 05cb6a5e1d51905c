"""History of a model's training: the names and steps of its saved checkpoints, and its log."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from explorer.translations import _

STEP = re.compile(r"(.+)/step-([0-9]{1,9})")


def model_name(checkpoint: str) -> str:
    """Return a checkpoint's name without its step, which all checkpoints of one training share."""
    match = STEP.fullmatch(checkpoint)
    return match[1] if match else checkpoint


def training_step(checkpoint: str) -> int | None:
    """Return the training step in a checkpoint's name; None if it has none."""
    match = STEP.fullmatch(checkpoint)
    return int(match[2]) if match else None


def checkpoints_of_training(checkpoint: str, checkpoints: Sequence[str]) -> list[str]:
    """Return the checkpoints of the same training, sorted by step; those without a step are last."""
    checkpoints_of_model = [name for name in checkpoints if model_name(name) == model_name(checkpoint)]
    return sorted(checkpoints_of_model, key=lambda name: (training_step(name) is None, training_step(name) or 0, name))


def step_label(checkpoint: str) -> str:
    """Return a label of a checkpoint's step: "step 512" for "fables/step-000512"."""
    step = training_step(checkpoint)
    return _("at its end") if step is None else _("step {step:,}", step=step)


LOG_FILE, MAX_LOG_BYTES = "training.jsonl", 16 << 20


@dataclass(frozen=True, eq=False)
class TrainingHistory:
    """The saved checkpoints and the log of a model's training.

    Attributes:
        checkpoint: name of the model's checkpoint.
        snapshots: step -> name of the checkpoint saved after it, by step; empty if the model was saved once.
        record: the training log, name -> (N,) float64, one number per evaluation, NaN if a line lacks it; a log
            that is not empty has "step".
    """

    checkpoint: str
    snapshots: Mapping[int, str]
    record: Mapping[str, np.ndarray]

    @property
    def step(self) -> int | None:
        """Training step of the checkpoint; None if its name has none."""
        return training_step(self.checkpoint)

    @property
    def model(self) -> str:
        """Name of the model, which all its checkpoints share."""
        return model_name(self.checkpoint)

    def nearest(self, step: float) -> str:
        """Return the checkpoint nearest to a step on a logarithmic scale; "" if there is none.

        0 counts as 1/2, as on the page's axes of steps.
        """
        return min(
            self.snapshots.items(), key=lambda snapshot: abs(log2_step(snapshot[0]) - log2_step(step)), default=(0, "")
        )[1]


def log2_step(step: float) -> float:
    """Return a step's coordinate on a logarithmic axis: log₂ of the step, and −1 for step 0."""
    return float(np.log2(max(step, 0.5)))


def load_training_history(checkpoint: str, checkpoints: Sequence[str], folder: Path) -> TrainingHistory:
    """Return the training history of a checkpoint; missing or damaged files count as empty.

    Args:
        checkpoints: names of all checkpoints.
        folder: the checkpoint's.
    """
    snapshots = {
        step: name
        for name in checkpoints_of_training(checkpoint, checkpoints)
        if (step := training_step(name)) is not None
    }
    record = load_training_log(folder) or (
        load_training_log(folder.parent) if model_name(checkpoint) != checkpoint else {}
    )
    return TrainingHistory(checkpoint, snapshots if len(snapshots) > 1 else {}, record)


def load_training_log(folder: Path) -> dict[str, np.ndarray]:
    """Read the numbers of a folder's `training.jsonl`, sorted by step."""
    rows = read_log_rows(folder / LOG_FILE)
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: np.array([row.get(name, np.nan) for row in rows]) for name in names}


def read_log_rows(path: Path) -> list[dict[str, float]]:
    """Return each line's numbers by name, sorted by step; lines without a step or that are no JSON are left out."""
    try:
        if not path.is_file() or path.stat().st_size > MAX_LOG_BYTES:
            return []
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
    rows = (parse_log_row(line) for line in lines)
    return sorted((row for row in rows if row.get("step", -1) >= 0), key=lambda row: row["step"])


def parse_log_row(line: str) -> dict[str, float]:
    """Parse the numbers of a line of a training log; empty if it is no JSON object."""
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    if not isinstance(row, dict):
        return {}
    return {name: float(value) for name, value in row.items() if type(value) in (int, float) and abs(value) < 1e300}
