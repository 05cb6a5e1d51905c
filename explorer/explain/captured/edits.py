"""What edits made of a run's values: a run that was changed is worked out again with its changes."""

from dataclasses import replace

import numpy as np

from explorer.analysis.interventions import effects_at
from explorer.explain.captured.formula import Formula
from explorer.explain.notation import number
from explorer.explain.place import as_text
from explorer.explain.working import ALL, Index, Working
from explorer.language import _
from explorer.state.interventions import Base, Shift
from explorer.tracing.trace import Trace


def edited(trace: Trace, name: str, at: Index, formula: Formula) -> Working:
    """Part of a captured value, worked out as it was computed, with what edits of it made of that."""
    working = formula.working(trace, at)
    effects = [effect for effect in effects_at(trace, name) if effect.symbol()]
    if not effects:
        return working
    shape = trace.shape(name)
    whole = formula.working(trace, (ALL,) * len(shape))  # what an edit makes of one number may depend on others
    value, sizes = whole.value, np.broadcast_to(whole.sizes, shape)
    for effect in effects:
        value, sizes = effect.again(trace, value, sizes)
        if np.any(effect.where(shape)[at]):
            working = then(
                working, value[at], sizes[at], effect.symbol(), effect.edit.words(trace.config, as_text(trace))
            )
    return working


def then(working: Working, value: np.ndarray, sizes: np.ndarray, written: str, words: str) -> Working:
    return replace(
        working,
        symbols=_(
            "{symbols}; then {times}, as it was changed: {words}", symbols=working.symbols, times=written, words=words
        ),
        numbers=lambda: f"{working.numbers()}; {written} = {number(value)}",
        value=value,
        sizes=sizes,
    )


def shared(trace: Trace, name: str, x: np.ndarray, position: int) -> np.ndarray:
    """Vectors (…, N) at a place in the stream at a position, or the logits there, as edits of that place leave them,
    all but what edits put in."""
    for effect in effects_at(trace, name):
        x = effect.share(trace, x, position)
    return x


def first_position(trace: Trace) -> int:
    """Where the first token counts as standing: 0 but for a shift."""
    return sum(int(edit.amount) for edit in trace.edits if isinstance(edit, Shift))


def theta(trace: Trace) -> float:
    """The base of the rotary angles."""
    changed = [edit.amount for edit in trace.edits if isinstance(edit, Base)]
    return changed[-1] if changed else trace.config.rope_theta
