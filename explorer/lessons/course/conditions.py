"""Conditions on a run that a lesson can state: comparisons of quantities, the predicted token, and combinations."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from explorer.lessons.course.evaluation_context import EvaluationContext
from explorer.lessons.course.measures import predict_next_token
from explorer.lessons.course.quantities import Quantity, parse_quantity_list
from explorer.lessons.course.yaml_blocks import (
    ListWithLines,
    MappingWithLines,
    errors_as_lesson_errors,
    validate_fields,
)


@dataclass(frozen=True)
class LessonCondition:
    """A condition on a run by its name in `CONDITIONS`, with its arguments."""

    name: str
    arguments: Any

    def holds(self, context: EvaluationContext) -> bool:
        """Return whether the run in the context meets the condition."""
        return bool(CONDITIONS[self.name][1](context, self.arguments))


def parse_condition(spec: Any, line: int) -> LessonCondition:
    """Parse a condition from a lesson's file, such as {more: [{of: tokens}, 4]}.

    Raises:
        LessonError: there is no such condition, or its arguments are of another kind.
    """
    with errors_as_lesson_errors(line):
        if not isinstance(spec, MappingWithLines) or len(spec) != 1:
            raise ValueError(f"a condition is a mapping with one of {', '.join(CONDITIONS)}, got {spec!r:.60}")
        ((name, value),) = spec.items()
        if name not in CONDITIONS:
            raise ValueError(f"“{name}” is no condition; there are {', '.join(CONDITIONS)}")
    return LessonCondition(name, CONDITIONS[name][0](value, spec.lines[name]))


@dataclass(frozen=True)
class NearlyEqual:
    """Two quantities that are equal within a tolerance."""

    a: Quantity
    b: Quantity
    within: Quantity


def _parse_nearly_equal(spec: Any, line: int) -> NearlyEqual:
    return NearlyEqual(*parse_quantity_list(spec, line, 3))


def _parse_conditions(specs: Any, line: int) -> list[LessonCondition]:
    with errors_as_lesson_errors(line):
        if not isinstance(specs, ListWithLines):
            raise ValueError(f"this is a list of conditions, got {specs!r:.60}")
    return [parse_condition(spec, line_number) for spec, line_number in zip(specs, specs.lines, strict=True)]


def _parse_token(spec: Any, line: int) -> tuple[str, int]:
    """Parse a token's text and its rank."""
    with errors_as_lesson_errors(line):
        if isinstance(spec, str):
            return spec, 1
        if not isinstance(spec, MappingWithLines):
            raise ValueError(f"a token is a text, or a mapping with “is” and “rank”, got {spec!r:.60}")
    validate_fields(spec, {"is": str, "rank": int}, ("is", "rank"))
    return spec["is"], spec["rank"]


def _has_token(context: EvaluationContext, token: tuple[str, int]) -> bool:
    text, rank = token
    return context.trace.vocabulary[predict_next_token(context).top(rank)[-1]] == text


def _compare(
    context: EvaluationContext, quantities: tuple[Quantity, ...], compare: Callable[[float, float], bool]
) -> bool:
    return compare(quantities[0].evaluate(context), quantities[1].evaluate(context))


CONDITIONS: dict[str, tuple[Callable[[Any, int], Any], Callable[[EvaluationContext, Any], bool]]] = {
    "more": (parse_quantity_list, lambda look, q: _compare(look, q, lambda a, b: a > b)),
    "less": (parse_quantity_list, lambda look, q: _compare(look, q, lambda a, b: a < b)),
    "about": (
        _parse_nearly_equal,
        lambda look, q: abs(q.a.evaluate(look) - q.b.evaluate(look)) <= q.within.evaluate(look),
    ),
    "token": (_parse_token, _has_token),
    "all": (_parse_conditions, lambda look, several: all(one.holds(look) for one in several)),
    "any": (_parse_conditions, lambda look, several: any(one.holds(look) for one in several)),
    "not": (parse_condition, lambda look, one: not one.holds(look)),
}
