"""The clicked point of a figure, and lookups of the element at that point."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from explorer.errors import PointNotFoundError, UserError
from explorer.translations import _


@dataclass(frozen=True)
class ClickedPoint:
    """A clicked point of a figure.

    Attributes:
        x, y: its coordinates; on a categorical axis, indices from 0.
        layer, head: of the subplot, if the figure has several.
        curve: index of the trace of the figure (line, bars or heatmap).
        item: index within the trace, from 0; None for a heatmap.
    """

    x: float
    y: float
    layer: int | None = None
    head: int | None = None
    curve: int | None = None
    item: int | None = None

    @classmethod
    def parse(cls, values: Mapping[str, Any]) -> "ClickedPoint":
        """Parse a point from untrusted values; UserError if they are invalid."""
        if not isinstance(values, Mapping):
            raise UserError(_("a point is an object with an x and a y, got {got!r:.80}", got=values))
        coordinates = {name: values[name] for name in cls.__dataclass_fields__ if values.get(name) is not None}
        for name, value in coordinates.items():
            if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 10**9:
                raise UserError(_("{axis} of a point must be a number, got {got!r:.80}", axis=name, got=value))
        if not {"x", "y"} <= set(coordinates):
            if not coordinates:
                raise UserError(_("a point has an x and a y, got neither"))
            raise UserError(_("a point has an x and a y, got {got}", got=", ".join(coordinates)))
        return cls(**coordinates)

    def coordinate_or_none(self, axis: str) -> int | None:
        """Return a coordinate as an index from 0, or None if it is missing.

        Raises PointNotFoundError if it is no index.
        """
        value = getattr(self, axis)
        if value is None:
            return None
        if value < 0 or value % 1:
            raise PointNotFoundError(_("{axis} of the point is no place on an axis: {value}", axis=axis, value=value))
        return int(value)

    def coordinate(self, axis: str) -> int:
        """Return a coordinate as an index from 0; PointNotFoundError if it is missing or no index."""
        index = self.coordinate_or_none(axis)
        if index is None:
            raise PointNotFoundError(_("the point has no {axis}", axis=axis))
        return index

    @property
    def column(self) -> int:
        return self.coordinate_or_none("x")

    @property
    def row(self) -> int:
        return self.coordinate_or_none("y")


def get_element(values: np.ndarray, *index: int) -> float:
    """Return values[index]; PointNotFoundError if there is no such element. Negative indices are out of range."""
    check_element(values.shape, *index)
    return float(values[index])


def check_element(shape: tuple[int, ...], *index: int):
    """Raise PointNotFoundError if a value of that shape has no such element."""
    if len(index) != len(shape) or not all(0 <= i < size for i, size in zip(index, shape, strict=False)):
        raise PointNotFoundError(
            _("there is no element {index} in a value of shape {shape}", index=list(index), shape=shape)
        )


Item = TypeVar("Item")


def get_item(items: Sequence[Item], index: int) -> Item:
    """Return items[index]; PointNotFoundError if there is no such item."""
    if not 0 <= index < len(items):
        raise PointNotFoundError(_("there is no place {place} among {count}", place=index, count=len(items)))
    return items[index]
