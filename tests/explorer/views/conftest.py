"""Fixture for the selections in runs of the small models."""

from collections.abc import Callable

import pytest

from explorer.state.selection import Selection
from tests.evaluation_case import Case


@pytest.fixture
def look(trace_of, edited_trace_of, lms) -> Callable[..., Case]:
    """Return `look(style, changed, **selection)`: a run of 12 tokens with an unusual selection."""

    def look(style: str, changed: bool = False, **selection) -> Case:
        trace = (edited_trace_of if changed else trace_of)(style)
        fields = {"layer": 1, "head": 2, "query": 9, "key": 4, "dim": 5, "neuron": 7, "target": 3, "rival": 6}
        return Case(trace, lms[style], Selection().replace(**fields | selection).clamp_to_trace(trace))

    return look
