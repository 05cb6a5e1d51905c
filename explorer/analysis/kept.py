"""Results that several pictures of an answer ask for."""

import threading
from collections import OrderedDict
from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar
from weakref import WeakKeyDictionary

from explorer.tracing.trace import Trace

MOST_OF_A_TRACE = 8  # each is a few numbers a part of the model

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


def kept_by_trace(
    work: Callable[Concatenate[Trace, Arguments], Result],
) -> Callable[Concatenate[Trace, Arguments], Result]:
    """A function of a trace and of what can be a key, of which the last results are kept as long as the trace lives.

    Two threads that ask at once may both compute.
    """
    results: WeakKeyDictionary[Trace, OrderedDict] = WeakKeyDictionary()
    lock = threading.Lock()

    @wraps(work)
    def kept(trace: Trace, *args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        question = args, tuple(sorted(kwargs.items()))
        with lock:
            known = results.setdefault(trace, OrderedDict())
            if question in known:
                known.move_to_end(question)
                return known[question]
        found = work(trace, *args, **kwargs)
        with lock:
            known[question] = found
            while len(known) > MOST_OF_A_TRACE:
                known.popitem(last=False)
        return found

    return kept
