"""What a walk is made of."""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from explorer.explain.notation import number


@dataclass(frozen=True)
class Number:
    """A number as it is drawn.

    Attributes:
        text: with three digits.
        share: of the largest that it is compared with, -1 to 1: how long or dark it is drawn.
    """

    text: str
    share: float

    @classmethod
    def of(cls, value: float, largest: float) -> "Number":
        share = value / largest if largest > 0 and np.isfinite(value) else 0.0
        return cls("−∞" if value == -np.inf else number(value), float(np.clip(share, -1, 1)))


def numbers(values: np.ndarray) -> list[Number]:
    """Numbers that are compared with each other."""
    finite = np.abs(values[np.isfinite(values)])
    return [Number.of(value, finite.max(initial=0.0)) for value in values]


@dataclass(frozen=True)
class Segment:
    """What is seen before somebody goes on.

    Attributes:
        says: what happens, in a sentence or two.
        kind: of drawing: "rows", "strips", "hands" or "tower".
        frames: what is drawn one after the other, as its kind has it.
    """

    says: str
    kind: str
    frames: list[dict[str, Any]]


@dataclass(frozen=True)
class Walk:
    """Segments in their order."""

    title: str
    segments: list[Segment]

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)
