"""How a number changes: a curve, drawn by points."""

from dataclasses import dataclass
from typing import Any

from explorer.language import _
from explorer.lessons.course.blocks import Fields, Items, at, taken
from explorer.lessons.course.look import NAMES, Look
from explorer.lessons.course.quantities import QUANTITY, Quantity, arguments_of, quantity
from explorer.lessons.course.questions.judged import BETWEEN, Judged, bin_of, numbers_in, written

MOST_POINTS = 12


@dataclass(frozen=True)
class Curve:
    """The reply is a number for each point.

    Attributes:
        of: the number at a point.
        over: the argument, or the name of the address, that is another at each point.
        values: its values there.
        labels: what they are called.
        lowest, highest: ends of the axis.
        within: how far off each point may be.
    """

    of: Quantity
    over: str
    values: tuple[Any, ...]
    labels: tuple[str, ...]
    lowest: float
    highest: float
    within: float

    def asked(self, look: Look) -> dict[str, Any]:
        return {"kind": "curve", "labels": list(self.labels), "lowest": self.lowest, "highest": self.highest}

    def judged(self, look: Look, reply: str | None) -> Judged | None:
        truth = [self.of.but(self.over, value).at(look) for value in self.values]
        ends = {"lowest": min(self.lowest, *truth), "highest": max(self.highest, *truth)}
        drawn = {"truth": truth, "written": [written(value) for value in truth], "within": self.within} | ends
        told = ", ".join(f"{label}: {written(value)}" for label, value in zip(self.labels, truth, strict=True))
        words = _("The run has {numbers}.", numbers=told)
        if reply is None:
            return Judged(None, words, drawn)
        if (given := numbers_in(reply, len(truth))) is None:
            return None
        near = sum(abs(a - b) <= self.within for a, b in zip(given, truth, strict=True))
        near_enough = _("{near} of {count} points are near enough.", near=near, count=len(truth))
        return Judged(near == len(truth), f"{near_enough} {words}", drawn)

    def counted(self, reply: str) -> str | None:
        given = numbers_in(reply, len(self.values))
        return given and BETWEEN.join(str(bin_of(value, self.lowest, self.highest)) for value in given)


def curve(ask: Fields, check: Fields | None) -> Curve:
    """Of a lesson's blocks; LessonError where it is none."""
    given = check["curve"]
    with at(check.lines["curve"]):
        if not isinstance(given, Fields):
            raise ValueError(f"“curve” is a mapping with “of”, “over” and “within”, got {given!r:.60}")
    taken(given, {"of": QUANTITY, "over": Fields, "within": float}, ("of", "over", "within"))
    of, over = quantity(given["of"], given.lines["of"]), given["over"]
    with at(over.line):
        name, values = next(iter(over.items()), ("", None))
        if len(over) != 1 or name not in {*NAMES, *arguments_of(of.name)}:
            raise ValueError("“over” has one name, of the address or an argument, and the list of its values")
        if not isinstance(values, Items) or not 2 <= len(values) <= MOST_POINTS:
            raise ValueError(f"a curve has 2 to {MOST_POINTS} values, got {values!r:.60}")
    labels = ask.get("labels", values)
    with at(ask.line):
        if "from" not in ask or "to" not in ask or not ask["from"] < ask["to"]:
            raise ValueError("a curve has “from” below “to”, the ends of its axis")
        if len(labels) != len(values):
            raise ValueError(f"a curve has a label a value: {len(values)}, got {len(labels)}")
    ends = float(ask["from"]), float(ask["to"])
    return Curve(of, name, tuple(values), tuple(map(str, labels)), *ends, float(given["within"]))
