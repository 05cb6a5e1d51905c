"""Captured values: how each comes from those before it, and whether it is what they give."""

from weakref import WeakKeyDictionary

import numpy as np

from explorer.analysis.edits import puts_in
from explorer.analysis.rounding import Check
from explorer.explain.captured.edits import edited, shared
from explorer.explain.captured.taps import formula_of
from explorer.explain.derivation import Derivation
from explorer.explain.place import place
from explorer.explain.point import element
from explorer.explain.working import ALL, Index, Working, subscript
from explorer.tracing.trace import Trace


def derivation_of(trace: Trace, name: str, index: tuple[int, ...]) -> Derivation:
    """How one element of a captured value comes about.

    Raises:
        NoSuchPoint: it has no such element.
        KeyError: nothing was captured under that name, or no formula is known for it.
    """
    value = element(trace[name], *index)
    source = formula_of(trace.config, name).source
    working = working_of(trace, name, index)
    return Derivation(f"{name}{subscript(index)}", place(trace, name, index), value, working, source, "captured")


def working_of(trace: Trace, name: str, at: Index = ()) -> Working:
    """Part of a captured value, or all of it, worked out again from what went into it and, of a changed run, the edits.

    KeyError where no formula is known by that name.
    """
    at = at or (ALL,) * trace[name].ndim
    return edited(trace, name, at, formula_of(trace.config, name))


def put_in(trace: Trace, name: str, position: int) -> np.ndarray:
    """What edits of a value (T, N) at a position put into it, given what it is worked out from: all but what the value
    before them has a share in."""
    value = trace[name][position].astype(np.float64)
    if not puts_in(trace, name):
        return np.zeros_like(value)
    before = formula_of(trace.config, name).working(trace, (ALL, ALL)).value[position]
    return value - shared(trace, name, before, position)


def check(trace: Trace, name: str) -> Check:
    """A whole captured value held against its working, once a run."""
    return _checked(trace, name)[0]


def inputs_of(trace: Trace, name: str) -> tuple[str, ...]:
    """Names of the captured values and weights that a captured value is worked out from."""
    return _checked(trace, name)[1]


def _checked(trace: Trace, name: str) -> tuple[Check, tuple[str, ...]]:
    known = _CHECKED.setdefault(trace, {})
    if name not in known:
        with np.errstate(all="ignore"):
            working = working_of(trace, name)
            found = Check.of(trace.dtype, trace[name], working.value, working.sizes)
        known[name] = found, tuple(read.name for read in working.inputs)
    return known[name]


_CHECKED: WeakKeyDictionary[Trace, dict[str, tuple[Check, tuple[str, ...]]]] = WeakKeyDictionary()
