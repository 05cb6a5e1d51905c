"""Derivations of numbers on the page."""

from dataclasses import dataclass
from typing import Literal

from explorer.explain.calculation import Calculation
from explorer.explain.notation import format_number
from explorer.explain.source_line import SourceLine
from explorer.translations import N_, _, translate

COMPARISON_TEXTS = {
    "captured": N_("captured {value}, recomputed {recomputed}, off by {difference}"),
    "drawn": N_("drawn {value}, recomputed {recomputed}, off by {difference}"),
}


@dataclass(frozen=True)
class Derivation:
    """A number on the page with its recomputation, its location in the run and the source line that computes it.

    Attributes:
        name: tap and index of a captured value, or a description of the number.
        location: text that says which token, head or layer the number belongs to.
        value: the number as captured, or as displayed in a figure.
        working: the recomputation from the number's inputs.
        source: the line that computes it: in the model if it was captured, else in the analysis.
        kind: whether it was captured or is displayed.
    """

    name: str
    location: str
    value: float
    working: Calculation
    source: SourceLine
    kind: Literal["captured", "drawn"] = "drawn"

    @property
    def recomputed_value(self) -> float:
        """The recomputed number."""
        return float(self.working.value)

    @property
    def difference(self) -> float:
        return abs(self.value - self.recomputed_value)

    def lines(self) -> list[str]:
        """Return the derivation as lines of plain text."""
        numbers = {"value": self.value, "recomputed": self.recomputed_value, "difference": self.difference}
        return [
            f"{self.name} = {format_number(self.value)}",
            self.location,
            self.working.symbols,
            self.working.numbers(),
            *(_("from {numbers}", numbers=read) for read in self.working.inputs),
            translate(COMPARISON_TEXTS[self.kind], **{name: format_number(number) for name, number in numbers.items()}),
            str(self.source),
        ]
