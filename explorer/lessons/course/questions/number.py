"""A number within a tolerance."""

from dataclasses import dataclass
from typing import Any

from explorer.language import _
from explorer.lessons.course.blocks import Fields, at, taken
from explorer.lessons.course.look import Look
from explorer.lessons.course.quantities import QUANTITY, Quantity, quantity
from explorer.lessons.course.questions.judged import Judged, as_number, bin_of, written


@dataclass(frozen=True)
class Number:
    """The reply is a number on a slider.

    Attributes:
        of: what is asked for.
        lowest, highest: ends of the slider, which are widened to the truth once that is drawn.
        within: how far off a reply may be.
    """

    of: Quantity
    lowest: float
    highest: float
    within: float

    def asked(self, look: Look) -> dict[str, Any]:
        return {"kind": "number", "lowest": self.lowest, "highest": self.highest}

    def judged(self, look: Look, reply: str | None) -> Judged | None:
        truth = self.of.at(look)
        ends = {"lowest": min(self.lowest, truth), "highest": max(self.highest, truth)}
        drawn = {"truth": truth, "written": written(truth), "within": self.within} | ends
        words = _("The run has {number}.", number=written(truth))
        if reply is None:
            return Judged(None, words, drawn)
        if (given := as_number(reply)) is None:
            return None
        off = _("You are off by {difference}.", difference=written(abs(given - truth)))
        return Judged(abs(given - truth) <= self.within, f"{words} {off}", drawn | {"yours": written(given)})

    def counted(self, reply: str) -> str | None:
        given = as_number(reply)
        return None if given is None else str(bin_of(given, self.lowest, self.highest))


def number(ask: Fields, check: Fields | None) -> Number:
    """Of a lesson's blocks; LessonError where it is none."""
    given = check["number"]
    with at(check.lines["number"]):
        if not isinstance(given, Fields):
            raise ValueError(f"“number” is a mapping with “of” and “within”, got {given!r:.60}")
    taken(given, {"of": QUANTITY, "within": float}, ("of", "within"))
    for name in ("from", "to"):
        with at(ask.line):
            if name not in ask:
                raise ValueError(f"a number is chosen on a slider: “{name}” is missing")
    with at(ask.lines["to"]):
        if not ask["from"] < ask["to"]:
            raise ValueError(f"“from” must be below “to”, got {ask['from']} and {ask['to']}")
    of = quantity(given["of"], given.lines["of"])
    return Number(of, float(ask["from"]), float(ask["to"]), float(given["within"]))
