"""Multiple-choice questions, whose right options are found by conditions on the run."""

from dataclasses import dataclass
from typing import Any

from explorer.explain.notation import join_names
from explorer.lessons.course.conditions import LessonCondition, parse_condition
from explorer.lessons.course.evaluation_context import EvaluationContext
from explorer.lessons.course.quantities import QUANTITY_KINDS, Quantity, parse_quantity
from explorer.lessons.course.questions.question import Grade, format_quantity
from explorer.lessons.course.yaml_blocks import (
    ListWithLines,
    MappingWithLines,
    errors_as_lesson_errors,
    validate_fields,
)
from explorer.state.selection import parse_index
from explorer.translations import _


@dataclass(frozen=True)
class Option:
    """A sentence, the condition under which it is right, and a number drawn beside it after the reply."""

    text: str
    when: LessonCondition
    value: Quantity | None


@dataclass(frozen=True)
class ChoiceQuestion:
    """A multiple-choice question; the reply is the number of an option, from 1."""

    options: tuple[Option, ...]

    def prompt_payload(self, context: EvaluationContext) -> dict[str, Any]:
        return {"kind": "choice", "options": [option.text for option in self.options]}

    def grade(self, context: EvaluationContext, reply: str | None) -> Grade | None:
        right = [i for i, option in enumerate(self.options, 1) if option.when.holds(context)]
        values = [option.value and option.value.evaluate(context) for option in self.options]
        truth = {
            "right": right,
            "shown": [None if value is None else [value, format_quantity(value)] for value in values],
        }
        is_right = None
        if reply is not None:
            chosen = parse_index(reply)
            if chosen is None or not 1 <= chosen <= len(self.options):
                return None
            is_right = chosen in right
        numbers = [str(number) for number in right]
        if not numbers:
            return Grade(is_right, _("In this run none of them is so."), truth)
        verdict = _("The run says {places}.", places=join_names(numbers))
        return Grade(is_right, verdict, truth)

    def tally_key(self, reply: str) -> str | None:
        chosen = parse_index(reply)
        return str(chosen) if chosen is not None and 1 <= chosen <= len(self.options) else None


def parse_choice_question(ask: MappingWithLines, check: MappingWithLines | None) -> ChoiceQuestion:
    """Parse a multiple-choice question from a lesson's blocks; LessonError where they are invalid."""
    options, parsed = ask.get("options"), []
    with errors_as_lesson_errors(ask.line):
        if not isinstance(options, ListWithLines) or not 2 <= len(options) <= 6:
            raise ValueError("a choice has “options”, a list of 2 to 6")
    for spec, line in zip(options, options.lines, strict=True):
        with errors_as_lesson_errors(line):
            if not isinstance(spec, MappingWithLines):
                raise ValueError(f"an option is a mapping with “says” and “when”, got {spec!r:.60}")
        validate_fields(spec, {"says": str, "when": MappingWithLines, "shows": QUANTITY_KINDS}, ("says", "when"))
        shows = parse_quantity(spec["shows"], spec.lines["shows"]) if "shows" in spec else None
        parsed.append(Option(spec["says"], parse_condition(spec["when"], spec.lines["when"]), shows))
    return ChoiceQuestion(tuple(parsed))
