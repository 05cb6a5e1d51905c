"""Questions for a number within a tolerance."""

from dataclasses import dataclass
from typing import Any

from explorer.lessons.course.evaluation_context import EvaluationContext
from explorer.lessons.course.quantities import QUANTITY_KINDS, Quantity, parse_quantity
from explorer.lessons.course.questions.question import Grade, bin_index, format_quantity, parse_number
from explorer.lessons.course.yaml_blocks import MappingWithLines, errors_as_lesson_errors, validate_fields
from explorer.translations import _


@dataclass(frozen=True)
class NumberQuestion:
    """A question for a number; the reply is a number on a slider.

    Attributes:
        quantity: the number.
        lowest, highest: ends of the slider, widened to the true number once that is drawn.
        tolerance: maximum error of a reply.
    """

    quantity: Quantity
    lowest: float
    highest: float
    tolerance: float

    def prompt_payload(self, context: EvaluationContext) -> dict[str, Any]:
        return {"kind": "number", "lowest": self.lowest, "highest": self.highest}

    def grade(self, context: EvaluationContext, reply: str | None) -> Grade | None:
        truth = self.quantity.evaluate(context)
        ends = {"lowest": min(self.lowest, truth), "highest": max(self.highest, truth)}
        payload = {"truth": truth, "written": format_quantity(truth), "within": self.tolerance} | ends
        verdict = _("The run has {number}.", number=format_quantity(truth))
        if reply is None:
            return Grade(None, verdict, payload)
        if (value := parse_number(reply)) is None:
            return None
        error_text = _("You are off by {difference}.", difference=format_quantity(abs(value - truth)))
        return Grade(
            abs(value - truth) <= self.tolerance, f"{verdict} {error_text}", payload | {"yours": format_quantity(value)}
        )

    def tally_key(self, reply: str) -> str | None:
        value = parse_number(reply)
        return None if value is None else str(bin_index(value, self.lowest, self.highest))


def parse_number_question(ask: MappingWithLines, check: MappingWithLines | None) -> NumberQuestion:
    """Parse a number question from a lesson's blocks; LessonError where they are invalid."""
    spec = check["number"]
    with errors_as_lesson_errors(check.lines["number"]):
        if not isinstance(spec, MappingWithLines):
            raise ValueError(f"“number” is a mapping with “of” and “within”, got {spec!r:.60}")
    validate_fields(spec, {"of": QUANTITY_KINDS, "within": float}, ("of", "within"))
    for name in ("from", "to"):
        with errors_as_lesson_errors(ask.line):
            if name not in ask:
                raise ValueError(f"a number is chosen on a slider: “{name}” is missing")
    with errors_as_lesson_errors(ask.lines["to"]):
        if not ask["from"] < ask["to"]:
            raise ValueError(f"“from” must be below “to”, got {ask['from']} and {ask['to']}")
    measured = parse_quantity(spec["of"], spec.lines["of"])
    return NumberQuestion(measured, float(ask["from"]), float(ask["to"]), float(spec["within"]))
