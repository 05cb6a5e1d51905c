"""What edits made of a run's values: a run that was changed is recomputed with its changes."""

import numpy as np

from explorer.state.interventions import Edit
from explorer.tracing.trace import Trace


def factors(trace: Trace, name: str) -> list[tuple[Edit, float]]:
    """The edits that multiplied a captured value or a part of it, and by what."""
    amounts = {"scale": lambda edit: edit.amount, "zero": lambda edit: 0.0}
    return [
        (edit, amounts[edit.operation](edit)) for edit in trace.edits if edit.tap == name and edit.operation in amounts
    ]


def multiply(trace: Trace, name: str, value: np.ndarray) -> None:
    """Change a value, in place, as the edits did: the head, of a value a head, or else the column that each names."""
    for edit, by in factors(trace, name):
        part = slice(None) if edit.index is None else edit.index
        value[part if value.ndim == 3 else (..., part)] *= by


def is_changed(edit: Edit, index: tuple[int, ...]) -> bool:
    """Whether an element belongs to what the edit changed."""
    return edit.index is None or edit.index == (index[0] if len(index) == 3 else index[-1])


def first_position(trace: Trace) -> int:
    """Where the first token counts as standing: 0 but for a shift."""
    return sum(int(edit.amount) for edit in trace.edits if edit.operation == "shift")


def theta(trace: Trace) -> float:
    """The base of the rotary angles."""
    changed = [edit.amount for edit in trace.edits if edit.operation == "base"]
    return changed[-1] if changed else trace.config.rope_theta
