"""Quantities in lessons, measures of a run and arithmetic of them, and conditions that compare them."""

import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from explorer.lessons.course.measures import (
    ARGUMENT_CHOICES,
    MEASURES,
    TOKEN_MEASURES,
    EvaluationContext,
    predict_next_token,
    state_fields,
)
from explorer.lessons.course.yaml_blocks import (
    ListWithLines,
    MappingWithLines,
    errors_as_lesson_errors,
    has_kind,
    validate_fields,
)


@dataclass(frozen=True)
class Quantity:
    """A number computed from a run.

    Attributes:
        name: in `QUANTITIES`.
        arguments: its own arguments.
        change: state fields to replace before it is computed.
    """

    name: str
    arguments: dict[str, Any] = field(default_factory=dict)
    change: dict[str, Any] = field(default_factory=dict)

    def evaluate(self, context: EvaluationContext) -> float:
        """Return the quantity's value in the context, with its own change of the state."""
        return float(QUANTITIES[self.name](context.replace(self.change), **self.arguments))

    def replace(self, name: str, value: Any) -> "Quantity":
        """Return the quantity with another value of an argument or of a state field."""
        if name in argument_kinds(self.name):
            return Quantity(self.name, {**self.arguments, name: value}, self.change)
        return Quantity(self.name, self.arguments, {**self.change, name: value})


def parse_quantity(spec: Any, line: int) -> Quantity:
    """Parse a quantity from a lesson's file.

    Raises:
        LessonError: there is no such quantity, or it has no such argument.
    """
    with errors_as_lesson_errors(line):
        if has_kind(spec, float):
            return Quantity("number", {"value": float(spec)})
        if not isinstance(spec, MappingWithLines):
            raise ValueError(f"a quantity is a number or a mapping with “of”, got {spec!r:.60}")
        if spec.get("of") not in list(QUANTITIES):
            raise ValueError(f"“{spec.get('of')}” is no quantity; there are {', '.join(QUANTITIES)}")
    name, lines = spec["of"], spec.lines
    kinds = argument_kinds(name)
    validate_fields(
        spec,
        {
            "of": str,
            **{arg: kind for arg, (kind, _must) in kinds.items()},
            **dict.fromkeys(state_fields(), STATE_VALUE_KINDS),
        },
    )
    arguments, change = {}, {}
    for arg, value in spec.items():
        if arg in kinds:
            is_other = kinds[arg][0] is QUANTITY_KINDS
            arguments[arg] = parse_quantity(value, lines[arg]) if is_other else value
        elif arg != "of":
            change[arg] = value
    with errors_as_lesson_errors(spec.line):
        if missing := [arg for arg, (_kind, must) in kinds.items() if must and arg not in arguments]:
            raise ValueError(f"“{name}” needs “{missing[0]}”")
        _check_arguments(name, arguments)
    return Quantity(name, arguments, change)


STATE_VALUE_KINDS = (str, int, float, bool)
QUANTITY_KINDS = (float, MappingWithLines)  # as it is written


def _check_arguments(name: str, arguments: dict[str, Any]):
    for arg, value in arguments.items():
        if arg in ARGUMENT_CHOICES and value not in ARGUMENT_CHOICES[arg]:
            raise ValueError(f"“{arg}” of “{name}” is one of {', '.join(ARGUMENT_CHOICES[arg])}, got {value!r:.60}")
    if "rank" in arguments and arguments["rank"] < 1:
        raise ValueError(f"“rank” is 1 for the likeliest token, got {arguments['rank']}")
    if name in TOKEN_MEASURES and len(arguments.keys() & {"token", "rank"}) != 1:
        raise ValueError(f"“{name}” needs either “token” or “rank”")


def argument_kinds(name: str) -> dict[str, tuple[Any, bool]]:
    """Return a quantity's own arguments: the kind of each, and whether it is required."""
    _look, *parameters = inspect.signature(QUANTITIES[name]).parameters.values()
    return {arg.name: (KIND_BY_ANNOTATION[arg.annotation], arg.default is arg.empty) for arg in parameters}


KIND_BY_ANNOTATION = {str: str, int: int, float: float, Quantity: QUANTITY_KINDS}


def _sum(context: EvaluationContext, a: Quantity, b: Quantity) -> float:
    return a.evaluate(context) + b.evaluate(context)


def _difference(context: EvaluationContext, a: Quantity, b: Quantity) -> float:
    return a.evaluate(context) - b.evaluate(context)


def _product(context: EvaluationContext, a: Quantity, b: Quantity) -> float:
    return a.evaluate(context) * b.evaluate(context)


def _ratio(context: EvaluationContext, a: Quantity, b: Quantity) -> float:
    denominator = b.evaluate(context)
    return a.evaluate(context) / denominator if denominator else math.nan


QUANTITIES: dict[str, Callable[..., float]] = {
    **MEASURES,
    "sum": _sum,
    "difference": _difference,
    "product": _product,
    "ratio": _ratio,
}


def parse_quantities(specs: MappingWithLines) -> dict[str, Quantity]:
    """Parse a mapping of names to quantities."""
    return {name: parse_quantity(value, specs.lines[name]) for name, value in specs.items()}


def parse_quantity_list(specs: Any, line: int, count: int = 2) -> list[Quantity]:
    """Parse a list of `count` quantities."""
    with errors_as_lesson_errors(line):
        if not isinstance(specs, ListWithLines) or len(specs) != count:
            raise ValueError(f"this compares a list of {count} quantities, got {specs!r:.60}")
    return [parse_quantity(spec, line_number) for spec, line_number in zip(specs, specs.lines, strict=True)]


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
