"""Captured values: how each comes from those before it, and whether it is what they give."""

from weakref import WeakKeyDictionary

import numpy as np

from explorer.analysis.interventions import puts_in
from explorer.analysis.rounding import Check
from explorer.explain.captured.edits import edited, shared
from explorer.explain.captured.taps import formula_of
from explorer.explain.derivation import Derivation
from explorer.explain.place import place
from explorer.explain.point import check_element
from explorer.explain.working import ALL, Index, Working, subscript
from explorer.tracing.trace import Trace


def derivation_of(trace: Trace, name: str, index: tuple[int, ...]) -> Derivation:
    """How one element of a captured value comes about.

    Raises:
        NoSuchPoint: it has no such element.
        KeyError: nothing was captured under that name, or no formula is known for it.
    """
    check_element(trace.shape(name), *index)
    value = float(trace.part(name, *index))
    source = formula_of(trace.config, name).source
    working = working_of(trace, name, index)
    return Derivation(f"{name}{subscript(index)}", place(trace, name, index), value, working, source, "captured")


def working_of(trace: Trace, name: str, at: Index = ()) -> Working:
    """Part of a captured value, or all of it, worked out again from what went into it and, of a changed run, the edits.

    KeyError where no formula is known by that name.
    """
    at = at or (ALL,) * len(trace.shape(name))
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
            known[name] = _logits_checked(trace) if name == "logits" else _whole_checked(trace, name)
    return known[name]


def _whole_checked(trace: Trace, name: str) -> tuple[Check, tuple[str, ...]]:
    working = working_of(trace, name)
    inputs, sizes = tuple(read.name for read in working.inputs), working.sizes
    if trace.is_on_demand and not _are_of_one_pass(trace, name, *inputs):
        # another kernel may have computed attention there, and what that rounds W_O spreads over the whole vector
        sizes = np.broadcast_to(sizes, trace.shape(name)).max(-1, keepdims=True)
    return Check.of(trace.dtype, trace[name], working.value, sizes), inputs


def _are_of_one_pass(trace: Trace, *names: str) -> bool:
    """Whether values were all kept, or all computed anew; what enters a block is the same for both."""
    return len({name in trace.values.kept for name in names if name in trace and not name.endswith(".resid_pre")}) <= 1


def _logits_checked(trace: Trace) -> tuple[Check, tuple[str, ...]]:
    """A part at a time: all in float64 would be several times what a run keeps."""
    if any(edit.reaches("logits") for edit in trace.edits):  # what an edit makes of one may depend on others
        return _whole_checked(trace, "logits")
    found = []
    for places, logits in trace.logits.chunks():
        for start in range(0, trace.config.vocab_size, MOST_TOKENS):
            tokens = slice(start, start + MOST_TOKENS)
            working = working_of(trace, "logits", (places, tokens))
            found.append(Check.of(trace.dtype, logits[:, tokens], working.value, working.sizes))
    return Check.worst(found), tuple(read.name for read in working.inputs)


MOST_TOKENS = 8192  # of the vocabulary, checked at a time
_CHECKED: WeakKeyDictionary[Trace, dict[str, tuple[Check, tuple[str, ...]]]] = WeakKeyDictionary()
