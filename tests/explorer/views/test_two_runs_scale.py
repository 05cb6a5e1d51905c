"""Shared scales of two runs' figures, on figures made by hand."""

from explorer.views import graph_objects as go
from explorer.views.two_run_figures import share_scale
from tests.subtest_loops import subtest_each


def make_line_figure(first: float, last: float) -> go.Figure:
    return go.Figure(go.Scatter(x=[0], y=[0]), {"yaxis": {"range": [first, last]}}, {})


@subtest_each("mine, theirs, both", [((0, 2), (1, 5), [0, 5]), ((2, 0), (5, 1), [5, 0])])
def test_axis_covers_both_and_keeps_its_direction(mine, theirs, both):
    assert (
        share_scale(make_line_figure(*mine), make_line_figure(*theirs)).traces_and_layout[1]["yaxis"]["range"] == both
    )


def test_colour_scale_covers_both():
    one, other = (go.Figure(go.Heatmap(z=[[0]], zmin=zmin, zmax=zmax), {}, {}) for zmin, zmax in ((-1, 2), (-3, 1)))
    for first, second in ((one, other), (other, one)):
        [cells] = share_scale(first, second).traces_and_layout[0]
        assert (cells["zmin"], cells["zmax"]) == (-3, 2)
