"""Questions for a curve, drawn by points."""

from dataclasses import dataclass
from typing import Any

from explorer.lessons.course.evaluation_context import EvaluationContext, state_fields
from explorer.lessons.course.quantities import QUANTITY_KINDS, Quantity, argument_kinds, quantity
from explorer.lessons.course.questions.question import SEPARATOR, Grade, bin_index, format_answer, parse_numbers
from explorer.lessons.course.yaml_blocks import Fields, Items, lesson_error_line, validate_fields
from explorer.translations import _

MAX_POINTS = 12


@dataclass(frozen=True)
class CurveQuestion:
    """A question for a curve; the reply is a number for each point.

    Attributes:
        quantity: the number at a point.
        argument: the argument, or the state field, that varies between points.
        values: its values.
        labels: labels of the points.
        lowest, highest: ends of the axis.
        tolerance: maximum error of each point.
    """

    quantity: Quantity
    argument: str
    values: tuple[Any, ...]
    labels: tuple[str, ...]
    lowest: float
    highest: float
    tolerance: float

    def prompt_payload(self, context: EvaluationContext) -> dict[str, Any]:
        return {"kind": "curve", "labels": list(self.labels), "lowest": self.lowest, "highest": self.highest}

    def grade(self, context: EvaluationContext, reply: str | None) -> Grade | None:
        truth = [self.quantity.replace(self.argument, value).evaluate(context) for value in self.values]
        ends = {"lowest": min(self.lowest, *truth), "highest": max(self.highest, *truth)}
        payload = {
            "truth": truth,
            "written": [format_answer(value) for value in truth],
            "within": self.tolerance,
        } | ends
        numbers = ", ".join(f"{label}: {format_answer(value)}" for label, value in zip(self.labels, truth, strict=True))
        verdict = _("The run has {numbers}.", numbers=numbers)
        if reply is None:
            return Grade(None, verdict, payload)
        if (points := parse_numbers(reply, len(truth))) is None:
            return None
        near = sum(abs(a - b) <= self.tolerance for a, b in zip(points, truth, strict=True))
        near_enough = _("{near} of {count} points are near enough.", near=near, count=len(truth))
        return Grade(near == len(truth), f"{near_enough} {verdict}", payload)

    def tally_key(self, reply: str) -> str | None:
        points = parse_numbers(reply, len(self.values))
        return points and SEPARATOR.join(str(bin_index(value, self.lowest, self.highest)) for value in points)


def parse_curve_question(ask: Fields, check: Fields | None) -> CurveQuestion:
    """Parse a curve question from a lesson's blocks; LessonError where they are invalid."""
    spec = check["curve"]
    with lesson_error_line(check.lines["curve"]):
        if not isinstance(spec, Fields):
            raise ValueError(f"“curve” is a mapping with “of”, “over” and “within”, got {spec!r:.60}")
    validate_fields(spec, {"of": QUANTITY_KINDS, "over": Fields, "within": float}, ("of", "over", "within"))
    measured, axis = quantity(spec["of"], spec.lines["of"]), spec["over"]
    with lesson_error_line(axis.line):
        name, values = next(iter(axis.items()), ("", None))
        if len(axis) != 1 or name not in {*state_fields(), *argument_kinds(measured.name)}:
            raise ValueError("“over” has one name, of the address or an argument, and the list of its values")
        if not isinstance(values, Items) or not 2 <= len(values) <= MAX_POINTS:
            raise ValueError(f"a curve has 2 to {MAX_POINTS} values, got {values!r:.60}")
    labels = ask.get("labels", values)
    with lesson_error_line(ask.line):
        if "from" not in ask or "to" not in ask or not ask["from"] < ask["to"]:
            raise ValueError("a curve has “from” below “to”, the ends of its axis")
        if len(labels) != len(values):
            raise ValueError(f"a curve has a label a value: {len(values)}, got {len(labels)}")
    ends = float(ask["from"]), float(ask["to"])
    return CurveQuestion(measured, name, tuple(values), tuple(map(str, labels)), *ends, float(spec["within"]))
