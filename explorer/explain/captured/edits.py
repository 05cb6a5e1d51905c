"""What edits made of a run's values: a run that was changed is worked out again with its changes."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from explorer.explain.notation import number
from explorer.explain.working import Index, Working
from explorer.language import _
from explorer.state.interventions import Base, Intervention, Shift
from explorer.tracing.trace import Trace


def edited(trace: Trace, name: str, at: Index, working: Working) -> Working:
    """Part of a captured value, worked out as it was computed, with what edits of it made of that."""
    shape = trace[name].shape
    axis = 0 if len(shape) == 3 else -1
    part = at[axis]
    for edit in multiplying(trace, name):
        if not isinstance(part, slice) and edit.index not in (None, part):
            continue
        by = factors(edit, shape[axis])[part]
        by = by[:, None, None] if np.ndim(by) and axis == 0 else by
        working = times(working, by, f"× {number(edit.factor)}", edit.words(trace.config))
    return working


def times(working: Working, by: np.ndarray | float, written: str, words: str) -> Working:
    value = working.value * by
    return replace(
        working,
        symbols=_(
            "{symbols}; then {times}, as it was changed: {words}", symbols=working.symbols, times=written, words=words
        ),
        numbers=lambda: f"{working.numbers()}; {written} = {number(value)}",
        value=value,
        sizes=working.sizes * np.abs(by),
    )


def multiplied(trace: Trace, name: str, x: np.ndarray) -> np.ndarray:
    """Vectors (…, N) at a place in the stream, or the logits there, as edits of that place multiply them."""
    for edit in multiplying(trace, name):
        x = x * factors(edit, x.shape[-1])
    return x


def multiplying(trace: Trace, name: str) -> Iterator[Intervention]:
    """The edits that multiplied a captured value or a part of it."""
    return (edit for edit in trace.edits if edit.tap == name and edit.factor is not None)


def factors(edit: Intervention, size: int) -> np.ndarray:
    """(size,) what an edit multiplies by along the axis that its index counts: of heads, or else the last."""
    by = np.ones(size)
    by[slice(None) if edit.index is None else edit.index] = edit.factor
    return by


def first_position(trace: Trace) -> int:
    """Where the first token counts as standing: 0 but for a shift."""
    return sum(int(edit.amount) for edit in trace.edits if isinstance(edit, Shift))


def theta(trace: Trace) -> float:
    """The base of the rotary angles."""
    changed = [edit.amount for edit in trace.edits if isinstance(edit, Base)]
    return changed[-1] if changed else trace.config.rope_theta
