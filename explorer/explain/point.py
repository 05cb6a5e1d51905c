"""What was clicked, and what there is at that place."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from explorer.language import _
from explorer.state.errors import NoSuchPoint, UserError


@dataclass(frozen=True)
class Point:
    """What was clicked.

    Attributes:
        x, y: its coordinates; on an axis of tokens or of other names, places counted from 0.
        layer, head: of the small picture it lies in, where there are many.
        curve: which line, set of bars or heatmap of the figure it is of.
        item: its place in that, counted from 0; of a heatmap none.
    """

    x: float
    y: float
    layer: int | None = None
    head: int | None = None
    curve: int | None = None
    item: int | None = None

    @classmethod
    def parse(cls, values: Mapping[str, Any]) -> "Point":
        """The point in a mapping that anybody may have written; UserError where it makes no sense."""
        if not isinstance(values, Mapping):
            raise UserError(_("a point is an object with an x and a y, got {got!r:.80}", got=values))
        known = {name: values[name] for name in cls.__dataclass_fields__ if values.get(name) is not None}
        for name, value in known.items():
            if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 10**9:
                raise UserError(_("{axis} of a point must be a number, got {got!r:.80}", axis=name, got=value))
        if not {"x", "y"} <= set(known):
            if not known:
                raise UserError(_("a point has an x and a y, got neither"))
            raise UserError(_("a point has an x and a y, got {got}", got=", ".join(known)))
        return cls(**known)

    def index(self, axis: str) -> int | None:
        """A coordinate as a place counted from 0. NoSuchPoint where it is none; None of one that was not given."""
        value = getattr(self, axis)
        if value is None:
            return None
        if value < 0 or value % 1:
            raise NoSuchPoint(_("{axis} of the point is no place on an axis: {value}", axis=axis, value=value))
        return int(value)

    def of(self, axis: str) -> int:
        """The same of a picture whose points have one. NoSuchPoint where this one has none."""
        place = self.index(axis)
        if place is None:
            raise NoSuchPoint(_("the point has no {axis}", axis=axis))
        return place

    @property
    def column(self) -> int:
        return self.index("x")

    @property
    def row(self) -> int:
        return self.index("y")


def element(values: np.ndarray, *index: int) -> float:
    """values[index]. NoSuchPoint where there is no such element, before the first too."""
    check_element(values.shape, *index)
    return float(values[index])


def check_element(shape: tuple[int, ...], *index: int):
    """NoSuchPoint where a value of that shape has no such element."""
    if len(index) != len(shape) or not all(0 <= i < size for i, size in zip(index, shape, strict=False)):
        raise NoSuchPoint(_("there is no element {index} in a value of shape {shape}", index=list(index), shape=shape))


Item = TypeVar("Item")


def nth(items: Sequence[Item], place: int) -> Item:
    """items[place]. NoSuchPoint where there is no such item."""
    if not 0 <= place < len(items):
        raise NoSuchPoint(_("there is no place {place} among {count}", place=place, count=len(items)))
    return items[place]
