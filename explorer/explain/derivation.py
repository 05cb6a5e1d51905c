"""How a number comes about."""

from dataclasses import dataclass
from typing import Literal

from explorer.explain.notation import number
from explorer.explain.source import Source
from explorer.explain.working import Working
from explorer.language import N_, _, look_up

COMPARED = {
    "captured": N_("captured {value}, recomputed {recomputed}, off by {difference}"),
    "drawn": N_("drawn {value}, recomputed {recomputed}, off by {difference}"),
}


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
        numbers = {name: number(getattr(self, name)) for name in ("value", "recomputed", "difference")}
        return [
            f"{self.name} = {number(self.value)}",
            self.place,
            self.working.symbols,
            self.working.numbers(),
            *(_("from {numbers}", numbers=read) for read in self.working.inputs),
            look_up(COMPARED[self.kind], **numbers),
            str(self.source),
        ]
