"""What edits make of a value that the analysis effects out on from there."""

import numpy as np

from explorer.analysis.interventions.effect import Effect
from explorer.analysis.interventions.effects_by_kind import EFFECTS
from explorer.state.interventions import Mask, in_order
from explorer.tracing.trace import Trace


def effects_at(trace: Trace, name: str) -> list[Effect]:
    """Those of the run's edits of a value, in the order in which they act."""
    return [EFFECTS[type(edit)](edit) for edit in in_order(trace.edits, trace.config) if edit.reaches(name)]


def as_edited(
    trace: Trace, name: str, x: np.ndarray, position: int | np.ndarray | None = None, back: bool = False
) -> np.ndarray:
    """Vectors (…, N) at a place in the stream, or the logits, as the run's edits of that place leave them: all but what
    edits add, for which see `put_in`.

    Args:
        position: of the vectors, or (T,) each one's of x (…, T, N); needed where edits hold at some positions only.
        back: of a direction that is read there, from what is read after the edits to what that is before them.
    """
    effects = effects_at(trace, name)
    for effect in reversed(effects) if back else effects:
        x = effect.share(trace, x, position)
    return x


def after_edits(trace: Trace, name: str, value: np.ndarray) -> np.ndarray:
    """A whole captured value, worked out as it was before the run's edits of it, and what it is then."""
    for effect in effects_at(trace, name):
        value, _sizes = effect.again(trace, value, np.abs(value))
    return value


def puts_in(trace: Trace, name: str) -> bool:
    """Whether edits of a value add something to it."""
    return any(effect.adds for effect in effects_at(trace, name))


def put_in(trace: Trace, name: str, before: np.ndarray, position: int | np.ndarray) -> np.ndarray:
    """What edits of a value added to it in this run, given what it was before them: the rest of what was captured."""
    captured = trace[name][..., position, :].astype(np.float64)
    return captured - as_edited(trace, name, before, position) if puts_in(trace, name) else np.zeros_like(captured)


def masked(trace: Trace, name: str) -> np.ndarray:
    """(H, T, T) booleans: True where the run's masks let no query of a pattern look."""
    found = np.zeros(trace[name].shape, dtype=bool)
    for edit in in_order(trace.edits, trace.config):
        if isinstance(edit, Mask) and edit.tap == name and edit.key < len(trace):
            queries = [query for query in range(len(trace)) if edit.hides_from(query)]
            found[slice(None) if edit.index is None else edit.index, queries, edit.key] = True
    return found
