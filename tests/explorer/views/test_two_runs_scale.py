"""One scale for the same picture of two runs, on pictures by hand."""

import pytest

from explorer.views import graph_objects as go
from explorer.views.two_runs.scale import on_one_scale


def lines(first: float, last: float) -> go.Figure:
    return go.Figure(go.Scatter(x=[0], y=[0]), {"yaxis": {"range": [first, last]}}, {})


@pytest.mark.parametrize(("mine", "theirs", "both"), [((0, 2), (1, 5), [0, 5]), ((2, 0), (5, 1), [5, 0])])
def test_an_axis_has_room_for_both_and_keeps_its_direction(mine, theirs, both):
    assert on_one_scale(lines(*mine), lines(*theirs)).parts[1]["yaxis"]["range"] == both
