"""Parsing of the clicked point that the browser sends."""

import pytest

from explorer.explain.derivation import ClickedPoint
from tests.subtest_loops import subtest_each


@subtest_each(
    "values", [{}, {"x": 1}, {"x": "1", "y": 1}, {"x": True, "y": 1}, {"x": float("nan"), "y": 1}, {"x": 1e300, "y": 1}]
)
def test_invalid_point_is_refused(values):
    with pytest.raises(ValueError, match="point"):
        ClickedPoint.parse(values)


def test_point_is_parsed_from_browser_values():
    point = ClickedPoint.parse({"x": 3, "y": 2.0, "customdata": [1], "layer": 1, "head": 0, "view": "rope"})
    assert (point.column, point.row, point.coordinate_or_none("layer"), point.coordinate_or_none("head")) == (
        3,
        2,
        1,
        0,
    )
    with pytest.raises(IndexError):
        _ = ClickedPoint(0.5, 0).column
