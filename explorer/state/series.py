"""Checkpoints of one training, by their names: "fables/step-000512" is the model "fables" after 512 steps of it."""

import re
from collections.abc import Sequence

from explorer.language import _

STEP = re.compile(r"(.+)/step-([0-9]{1,9})")


def model_of(checkpoint: str) -> str:
    """The name of the model, which all checkpoints of one training share."""
    found = STEP.fullmatch(checkpoint)
    return found[1] if found else checkpoint


def step_of(checkpoint: str) -> int | None:
    """After how many steps of its training the model was kept; None where the name does not say."""
    found = STEP.fullmatch(checkpoint)
    return int(found[2]) if found else None


def series_of(checkpoint: str, checkpoints: Sequence[str]) -> list[str]:
    """Of all checkpoints those of the same training, in its order; those that name no step are the last."""
    same = [name for name in checkpoints if model_of(name) == model_of(checkpoint)]
    return sorted(same, key=lambda name: (step_of(name) is None, step_of(name) or 0, name))


def moment(checkpoint: str) -> str:
    """When of its training the model was kept, in words: of "fables/step-000512" it is "step 512"."""
    step = step_of(checkpoint)
    return _("at its end") if step is None else _("step {step:,}", step=step)
