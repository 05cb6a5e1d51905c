"""Which of several sentences is right: each says when."""

from dataclasses import dataclass
from typing import Any

from explorer.explain.notation import listed
from explorer.language import _
from explorer.lessons.course.blocks import Fields, Items, at, taken
from explorer.lessons.course.conditions import Condition, condition
from explorer.lessons.course.look import Look
from explorer.lessons.course.quantities import QUANTITY, Quantity, quantity
from explorer.lessons.course.questions.judged import Judged, written
from explorer.state.selection import as_index


@dataclass(frozen=True)
class Option:
    """A sentence, when it is right, and a number that is drawn beside it once it is told."""

    says: str
    when: Condition
    shows: Quantity | None


@dataclass(frozen=True)
class Choice:
    """The reply is the place of an option, from 1."""

    options: tuple[Option, ...]

    def asked(self, look: Look) -> dict[str, Any]:
        return {"kind": "choice", "options": [option.says for option in self.options]}

    def judged(self, look: Look, reply: str | None) -> Judged | None:
        right = [i for i, option in enumerate(self.options, 1) if option.when.holds(look)]
        shown = [option.shows and option.shows.at(look) for option in self.options]
        truth = {"right": right, "shown": [None if value is None else [value, written(value)] for value in shown]}
        is_right = None
        if reply is not None:
            chosen = as_index(reply)
            if chosen is None or not 1 <= chosen <= len(self.options):
                return None
            is_right = chosen in right
        told = [str(place) for place in right]
        if not told:
            return Judged(is_right, _("In this run none of them is so."), truth)
        words = _("The run says {places}.", places=listed(told))
        return Judged(is_right, words, truth)

    def counted(self, reply: str) -> str | None:
        chosen = as_index(reply)
        return str(chosen) if chosen is not None and 1 <= chosen <= len(self.options) else None


def choice(ask: Fields, check: Fields | None) -> Choice:
    """Of a lesson's blocks; LessonError where it is none."""
    options, found = ask.get("options"), []
    with at(ask.line):
        if not isinstance(options, Items) or not 2 <= len(options) <= 6:
            raise ValueError("a choice has “options”, a list of 2 to 6")
    for given, line in zip(options, options.lines, strict=True):
        with at(line):
            if not isinstance(given, Fields):
                raise ValueError(f"an option is a mapping with “says” and “when”, got {given!r:.60}")
        taken(given, {"says": str, "when": Fields, "shows": QUANTITY}, ("says", "when"))
        shows = quantity(given["shows"], given.lines["shows"]) if "shows" in given else None
        found.append(Option(given["says"], condition(given["when"], given.lines["when"]), shows))
    return Choice(tuple(found))
