"""Names of checkpoints of one training: "fables/step-000512" is the model "fables" after 512 steps."""

import re
from collections.abc import Sequence

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
