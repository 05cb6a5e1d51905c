"""Numbers that a lesson may ask for by name, worked out from a run.

A quantity is written as a number, or as a mapping: `of` its name, its own arguments, and names of the address whose
values take the place of the step's, as in {of: probability, token: " moon", temperature: 0.5}.
"""

import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from explorer.lessons.course.blocks import Fields, Items, at, is_a, taken
from explorer.lessons.course.look import NAMES, Look
from explorer.lessons.course.measures import CHOICES, MEASURES, OF_A_TOKEN


@dataclass(frozen=True)
class Quantity:
    """A number of a run.

    Attributes:
        name: in `QUANTITIES`.
        own: its arguments.
        change: of the state that it is worked out from.
    """

    name: str
    own: dict[str, Any] = field(default_factory=dict)
    change: dict[str, Any] = field(default_factory=dict)

    def at(self, look: Look) -> float:
        return float(QUANTITIES[self.name](look.but(self.change), **self.own))

    def but(self, name: str, value: Any) -> "Quantity":
        """The same with another value of an argument, or of the state."""
        if name in arguments_of(self.name):
            return Quantity(self.name, {**self.own, name: value}, self.change)
        return Quantity(self.name, self.own, {**self.change, name: value})


def quantity(given: Any, line: int) -> Quantity:
    """What a lesson's file says.

    Raises:
        LessonError: there is no such quantity, or it has no such argument.
    """
    with at(line):
        if is_a(given, float):
            return Quantity("number", {"value": float(given)})
        if not isinstance(given, Fields):
            raise ValueError(f"a quantity is a number or a mapping with “of”, got {given!r:.60}")
        if given.get("of") not in list(QUANTITIES):
            raise ValueError(f"“{given.get('of')}” is no quantity; there are {', '.join(QUANTITIES)}")
    name, given_lines = given["of"], given.lines
    known = arguments_of(name)
    taken(given, {"of": str, **{arg: kind for arg, (kind, _must) in known.items()}, **dict.fromkeys(NAMES, ANY)})
    own, change = {}, {}
    for arg, value in given.items():
        if arg in known:
            is_other = known[arg][0] is QUANTITY
            own[arg] = quantity(value, given_lines[arg]) if is_other else value
        elif arg != "of":
            change[arg] = value
    with at(given.line):
        if missing := [arg for arg, (_kind, must) in known.items() if must and arg not in own]:
            raise ValueError(f"“{name}” needs “{missing[0]}”")
        _check(name, own)
    return Quantity(name, own, change)


ANY = (str, int, float, bool)
QUANTITY = (float, Fields)  # as it is written


def _check(name: str, own: dict[str, Any]):
    for arg, value in own.items():
        if arg in CHOICES and value not in CHOICES[arg]:
            raise ValueError(f"“{arg}” of “{name}” is one of {', '.join(CHOICES[arg])}, got {value!r:.60}")
    if "rank" in own and own["rank"] < 1:
        raise ValueError(f"“rank” is 1 for the likeliest token, got {own['rank']}")
    if name in OF_A_TOKEN and len(own.keys() & {"token", "rank"}) != 1:
        raise ValueError(f"“{name}” needs either “token” or “rank”")


def arguments_of(name: str) -> dict[str, tuple[Any, bool]]:
    """A quantity's own arguments: the kind of each, and whether there must be one."""
    _look, *own = inspect.signature(QUANTITIES[name]).parameters.values()
    return {arg.name: (KIND_OF[arg.annotation], arg.default is arg.empty) for arg in own}


KIND_OF = {str: str, int: int, float: float, Quantity: QUANTITY}


def _sum(look: Look, a: Quantity, b: Quantity) -> float:
    return a.at(look) + b.at(look)


def _difference(look: Look, a: Quantity, b: Quantity) -> float:
    return a.at(look) - b.at(look)


def _product(look: Look, a: Quantity, b: Quantity) -> float:
    return a.at(look) * b.at(look)


def _ratio(look: Look, a: Quantity, b: Quantity) -> float:
    below = b.at(look)
    return a.at(look) / below if below else math.nan


QUANTITIES: dict[str, Callable[..., float]] = {
    **MEASURES,
    "sum": _sum,
    "difference": _difference,
    "product": _product,
    "ratio": _ratio,
}


def quantities(given: Fields) -> dict[str, Quantity]:
    """Several by their names."""
    return {name: quantity(value, given.lines[name]) for name, value in given.items()}


def two(given: Any, line: int, most: int = 2) -> list[Quantity]:
    """A list of two quantities."""
    with at(line):
        if not isinstance(given, Items) or len(given) != most:
            raise ValueError(f"this compares a list of {most} quantities, got {given!r:.60}")
    return [quantity(one, place) for one, place in zip(given, given.lines, strict=True)]
