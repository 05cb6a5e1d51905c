"""Questions for a curve, drawn by points."""

from dataclasses import dataclass
from typing import Any

from explorer.lessons.course.evaluation_context import EvaluationContext, state_fields
from explorer.lessons.course.quantities import QUANTITY_KINDS, Quantity, argument_kinds, parse_quantity
from explorer.lessons.course.questions.question import SEPARATOR, Grade, bin_index, format_quantity, parse_numbers
from explorer.lessons.course.yaml_blocks import (
    ListWithLines,
    MappingWithLines,
    errors_as_lesson_errors,
    validate_fields,
)
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
            "written": [format_quantity(value) for value in truth],
            "within": self.tolerance,
        } | ends
        numbers = ", ".join(
            f"{label}: {format_quantity(value)}" for label, value in zip(self.labels, truth, strict=True)
        )
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


def parse_curve_question(ask: MappingWithLines, check: MappingWithLines | None) -> CurveQuestion:
    """Parse a curve question from a lesson's blocks; LessonError where they are invalid."""
    spec = check["curve"]
    with errors_as_lesson_errors(check.lines["curve"]):
        if not isinstance(spec, MappingWithLines):
            raise ValueError(f"“curve” is a mapping with “of”, “over” and “within”, got {spec!r:.60}")
    validate_fields(spec, {"of": QUANTITY_KINDS, "over": MappingWithLines, "within": float}, ("of", "over", "within"))
    measured, axis = parse_quantity(spec["of"], spec.lines["of"]), spec["over"]
    with errors_as_lesson_errors(axis.line):
        name, values = next(iter(axis.items()), ("", None))
        if len(axis) != 1 or name not in {*state_fields(), *argument_kinds(measured.name)}:
            raise ValueError("“over” has one name, of the address or an argument, and the list of its values")
        if not isinstance(values, ListWithLines) or not 2 <= len(values) <= MAX_POINTS:
            raise ValueError(f"a curve has 2 to {MAX_POINTS} values, got {values!r:.60}")
    labels = ask.get("labels", values)
    with errors_as_lesson_errors(ask.line):
        if "from" not in ask or "to" not in ask or not ask["from"] < ask["to"]:
            raise ValueError("a curve has “from” below “to”, the ends of its axis")
        if len(labels) != len(values):
            raise ValueError(f"a curve has a label a value: {len(values)}, got {len(labels)}")
    ends = float(ask["from"]), float(ask["to"])
    return CurveQuestion(measured, name, tuple(values), tuple(map(str, labels)), *ends, float(spec["within"]))
