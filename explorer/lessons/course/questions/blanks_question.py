"""Worked examples with blanks: the whole example, its last blank, or all blanks."""

from dataclasses import dataclass
from typing import Any

from explorer.explain.notation import format_number
from explorer.lessons.course.evaluation_context import EvaluationContext, state_fields
from explorer.lessons.course.questions.question import SEPARATOR, Grade, parse_numbers
from explorer.lessons.course.questions.worked_examples import WORKED_EXAMPLES, WorkedExampleRow
from explorer.lessons.course.yaml_blocks import MappingWithLines, errors_as_lesson_errors, validate_fields
from explorer.translations import ngettext

BLANKS = ("none", "one", "all")
MAX_BLANKS = 40  # blanks, of whichever working
RELATIVE_TOLERANCE, ABSOLUTE_TOLERANCE = (
    0.02,
    0.006,
)  # errors accepted in a reply, as people compute with three digits


@dataclass(frozen=True)
class BlanksQuestion:
    """A worked example with blanks; the reply is a number for each.

    Attributes:
        worked_example: its name.
        blanks: "none" for an example, "one" for its result, "all" for all computed numbers.
        change: state fields to replace before it is computed.
    """

    worked_example: str
    blanks: str
    change: dict[str, Any]

    def prompt_payload(self, context: EvaluationContext) -> dict[str, Any]:
        rows = self._rows(context)
        lines = [
            {"says": row.text, "value": None if row in self._blank_rows(rows) else format_number(row.value)}
            for row in rows
        ]
        return {"kind": "blanks", "rows": lines, "is_example": self.blanks == "none"}

    def grade(self, context: EvaluationContext, reply: str | None) -> Grade | None:
        rows = self._rows(context)
        blanks = self._blank_rows(rows)
        truth = {"truth": [format_number(row.value) for row in blanks]}
        if reply is None:
            return Grade(None, "", truth)
        if not blanks or (numbers := parse_numbers(reply, len(blanks))) is None:
            return None
        are_right = [is_close(value, row.value) for value, row in zip(numbers, blanks, strict=True)]
        right, count = sum(are_right), len(blanks)
        verdict = ngettext(
            "{right} of {count} blank is right.", "{right} of {count} blanks are right.", count, right=right
        )
        return Grade(right == count, verdict, truth | {"are_right": are_right})

    def tally_key(self, reply: str) -> str | None:
        numbers = parse_numbers(reply, reply.count(SEPARATOR) + 1)
        return SEPARATOR.join(f"{value:.6g}" for value in numbers) if numbers and len(numbers) <= MAX_BLANKS else None

    def _rows(self, context: EvaluationContext) -> list[WorkedExampleRow]:
        return WORKED_EXAMPLES[self.worked_example](context.replace(self.change))

    def _blank_rows(self, rows: list[WorkedExampleRow]) -> list[WorkedExampleRow]:
        computed = [row for row in rows if not row.is_given]
        return {"none": [], "one": computed[-1:], "all": computed}[self.blanks]


def is_close(value: float, truth: float) -> bool:
    """Return whether a reply's number is right, allowing for arithmetic with three digits."""
    return bool(abs(value - truth) <= max(RELATIVE_TOLERANCE * abs(truth), ABSOLUTE_TOLERANCE))


def parse_blanks_question(ask: MappingWithLines, check: MappingWithLines | None) -> BlanksQuestion:
    """Parse a blanks question from a lesson's blocks; LessonError where they are invalid."""
    spec = check["working"]
    with errors_as_lesson_errors(check.lines["working"]):
        if not isinstance(spec, MappingWithLines):
            raise ValueError(f"“working” is a mapping with “of” and “blanks”, got {spec!r:.60}")
    validate_fields(
        spec, {"of": str, "blanks": str, **dict.fromkeys(state_fields(), (str, int, float))}, ("of", "blanks")
    )
    with errors_as_lesson_errors(spec.line):
        if spec["of"] not in WORKED_EXAMPLES:
            raise ValueError(f"“{spec['of']}” is no working; there are {', '.join(WORKED_EXAMPLES)}")
        if spec["blanks"] not in BLANKS:
            raise ValueError(f"“blanks” are one of {', '.join(BLANKS)}, got {spec['blanks']!r:.60}")
    change = {name: value for name, value in spec.items() if name not in ("of", "blanks")}
    return BlanksQuestion(spec["of"], spec["blanks"], change)
