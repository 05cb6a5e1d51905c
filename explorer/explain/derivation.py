"""How a number comes about."""

from dataclasses import dataclass
from typing import Literal

from explorer.explain.notation import number
from explorer.explain.source import Source
from explorer.explain.working import Working


@dataclass(frozen=True)
class Derivation:
    """How a number on the page comes about.

    Attributes:
        name: of the captured value, indexed; or what the number is called.
        place: of what it is, in words.
        value: the number as it was captured, or as it is drawn.
        working: the number again, from what it is worked out from.
        source: the line that computes it: of the model a captured one, of the analysis any other.
        kind: which of the two it is.
    """

    name: str
    place: str
    value: float
    working: Working
    source: Source
    kind: Literal["captured", "drawn"] = "drawn"

    @property
    def recomputed(self) -> float:
        """The number, worked out again."""
        return float(self.working.value)

    @property
    def difference(self) -> float:
        return abs(self.value - self.recomputed)

    def lines(self) -> list[str]:
        """All of it as lines of plain text."""
        return [
            f"{self.name} = {number(self.value)}",
            self.place,
            self.working.symbols,
            self.working.numbers(),
            *(f"from {read}" for read in self.working.inputs),
            f"{self.kind} {number(self.value)}, recomputed {number(self.recomputed)}, off by {number(self.difference)}",
            str(self.source),
        ]
