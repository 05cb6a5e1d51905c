"""A per-trace cache for results that several figures need."""

import threading
from collections import OrderedDict
from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar
from weakref import WeakKeyDictionary

from explorer.tracing.trace import Trace

MAX_RESULTS_PER_TRACE = 8  # each has a few numbers per component

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


def cache_per_trace(
    function: Callable[Concatenate[Trace, Arguments], Result],
) -> Callable[Concatenate[Trace, Arguments], Result]:
    """Cache the latest results of a function of a trace and hashable arguments while the trace lives.

    Two threads that call at the same time may both compute the result.
    """
    results: WeakKeyDictionary[Trace, OrderedDict] = WeakKeyDictionary()
    lock = threading.Lock()

    @wraps(function)
    def wrapper(trace: Trace, *args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        key = args, tuple(sorted(kwargs.items()))
        with lock:
            trace_results = results.setdefault(trace, OrderedDict())
            if key in trace_results:
                trace_results.move_to_end(key)
                return trace_results[key]
        result = function(trace, *args, **kwargs)
        with lock:
            trace_results[key] = result
            while len(trace_results) > MAX_RESULTS_PER_TRACE:
                trace_results.popitem(last=False)
        return result

    return wrapper
