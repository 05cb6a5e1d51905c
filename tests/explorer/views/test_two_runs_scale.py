"""Shared scales of two runs' figures, on figures made by hand."""

import pytest

from explorer.views import graph_objects as go
from explorer.views.two_run_figures import share_scale


def lines(first: float, last: float) -> go.Figure:
    return go.Figure(go.Scatter(x=[0], y=[0]), {"yaxis": {"range": [first, last]}}, {})


@pytest.mark.parametrize(("mine", "theirs", "both"), [((0, 2), (1, 5), [0, 5]), ((2, 0), (5, 1), [5, 0])])
def test_an_axis_has_room_for_both_and_keeps_its_direction(mine, theirs, both):
    assert share_scale(lines(*mine), lines(*theirs)).traces_and_layout[1]["yaxis"]["range"] == both
