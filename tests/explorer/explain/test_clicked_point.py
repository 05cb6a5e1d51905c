"""Coordinates of a clicked point."""

import pytest

from explorer.explain.derivation import ClickedPoint


def test_coordinates_are_indices():
    point = ClickedPoint(x=3, y=2.0, layer=1, head=0)
    assert (point.column, point.row, point.coordinate_or_none("layer"), point.coordinate_or_none("head")) == (
        3,
        2,
        1,
        0,
    )
    with pytest.raises(IndexError):
        _ = ClickedPoint(0.5, 0).column
