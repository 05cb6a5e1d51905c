"""Somebody who looks at the runs of the small models."""

from collections.abc import Callable

import pytest

from explorer.state.selection import Selection
from tests.look import Look


@pytest.fixture
def look(trace_of, edited_trace_of, lms) -> Callable[..., Look]:
    """`look(style, changed, **selection)` is a run of 12 tokens, looked at from an unlikely place."""

    def look(style: str, changed: bool = False, **selection) -> Look:
        trace = (edited_trace_of if changed else trace_of)(style)
        place = {"layer": 1, "head": 2, "query": 9, "key": 4, "dim": 5, "neuron": 7, "target": 3, "rival": 6}
        return Look(trace, lms[style], Selection(**place | selection).within(trace))

    return look
