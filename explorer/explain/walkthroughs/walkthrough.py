"""Data of a walkthrough."""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from explorer.explain.notation import format_number


@dataclass(frozen=True)
class DisplayNumber:
    """A number as text, with its size relative to the largest number it is compared with.

    Attributes:
        text: with three significant digits.
        share: fraction of the largest number it is compared with, -1 to 1, for its size or shade.
    """

    text: str
    share: float

    @classmethod
    def from_value(cls, value: float, largest: float) -> "DisplayNumber":
        """Format a value, and give its share of the largest, from −1 to 1."""
        share = value / largest if largest > 0 and np.isfinite(value) else 0.0
        return cls("−∞" if value == -np.inf else format_number(value), float(np.clip(share, -1, 1)))


def display_numbers(values: np.ndarray) -> list[DisplayNumber]:
    """Return values as text, each with its size relative to the largest of them."""
    finite = np.abs(values[np.isfinite(values)])
    return [DisplayNumber.from_value(value, finite.max(initial=0.0)) for value in values]


@dataclass(frozen=True)
class WalkthroughStep:
    """One step of a walkthrough.

    Attributes:
        says: explanation, one or two sentences.
        kind: of drawing: "rows", "strips", "hands" or "tower".
        frames: animation frames; their keys depend on the kind.
    """

    says: str
    kind: str
    frames: list[dict[str, Any]]


@dataclass(frozen=True)
class Walkthrough:
    """A walkthrough: a title and its steps in order."""

    title: str
    segments: list[WalkthroughStep]

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)
