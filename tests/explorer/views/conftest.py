"""Fixture for runs of the small models with a selection."""

from collections.abc import Callable

import pytest

from explorer.state.selection import Selection
from tests.evaluation_case import Case


@pytest.fixture
def make_case(capture_trace, capture_edited_trace, lms) -> Callable[..., Case]:
    """Return `make_case(style, changed, **selection)`: a run of 12 tokens with an unusual selection."""

    def make_case(style: str, changed: bool = False, **selection) -> Case:
        trace = (capture_edited_trace if changed else capture_trace)(style)
        fields = {"layer": 1, "head": 2, "query": 9, "key": 4, "dim": 5, "neuron": 7, "target": 3, "rival": 6}
        return Case(trace, lms[style], Selection().replace(**fields | selection).clamp_to_trace(trace))

    return make_case
