"""What a lesson may ask to be true of a run: comparisons of quantities, and what a token or a head is."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from explorer.lessons.course.blocks import Fields, Items, at, taken
from explorer.lessons.course.look import Look
from explorer.lessons.course.measures import prediction
from explorer.lessons.course.quantities import Quantity, two


@dataclass(frozen=True)
class Condition:
    """One of `CONDITIONS`, with what it was given."""

    name: str
    given: Any

    def holds(self, look: Look) -> bool:
        return bool(CONDITIONS[self.name][1](look, self.given))


def condition(given: Any, line: int) -> Condition:
    """What a lesson's file says, as in {more: [{of: tokens}, 4]}.

    Raises:
        LessonError: there is no such condition, or it is given something else.
    """
    with at(line):
        if not isinstance(given, Fields) or len(given) != 1:
            raise ValueError(f"a condition is a mapping with one of {', '.join(CONDITIONS)}, got {given!r:.60}")
        ((name, value),) = given.items()
        if name not in CONDITIONS:
            raise ValueError(f"“{name}” is no condition; there are {', '.join(CONDITIONS)}")
    return Condition(name, CONDITIONS[name][0](value, given.lines[name]))


@dataclass(frozen=True)
class About:
    """Two quantities that are as good as equal."""

    a: Quantity
    b: Quantity
    within: Quantity


def _about(given: Any, line: int) -> About:
    return About(*two(given, line, 3))


def _each(given: Any, line: int) -> list[Condition]:
    with at(line):
        if not isinstance(given, Items):
            raise ValueError(f"this is a list of conditions, got {given!r:.60}")
    return [condition(one, place) for one, place in zip(given, given.lines, strict=True)]


def _token(given: Any, line: int) -> tuple[str, int]:
    """A token's text and its rank."""
    with at(line):
        if isinstance(given, str):
            return given, 1
        if not isinstance(given, Fields):
            raise ValueError(f"a token is a text, or a mapping with “is” and “rank”, got {given!r:.60}")
    taken(given, {"is": str, "rank": int}, ("is", "rank"))
    return given["is"], given["rank"]


def _has_token(look: Look, token: tuple[str, int]) -> bool:
    text, rank = token
    return look.trace.vocabulary[prediction(look).top(rank)[-1]] == text


def _several(look: Look, given: tuple[Quantity, ...], compare: Callable[[float, float], bool]) -> bool:
    return compare(given[0].at(look), given[1].at(look))


CONDITIONS: dict[str, tuple[Callable[[Any, int], Any], Callable[[Look, Any], bool]]] = {
    "more": (two, lambda look, q: _several(look, q, lambda a, b: a > b)),
    "less": (two, lambda look, q: _several(look, q, lambda a, b: a < b)),
    "about": (_about, lambda look, q: abs(q.a.at(look) - q.b.at(look)) <= q.within.at(look)),
    "token": (_token, _has_token),
    "all": (_each, lambda look, several: all(one.holds(look) for one in several)),
    "any": (_each, lambda look, several: any(one.holds(look) for one in several)),
    "not": (condition, lambda look, one: not one.holds(look)),
}
