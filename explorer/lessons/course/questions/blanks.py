"""A working of the page with blanks to fill: the whole example, then one blank, then all."""

from dataclasses import dataclass
from typing import Any

from explorer.explain.notation import number as written
from explorer.language import ngettext
from explorer.lessons.course.blocks import Fields, at, taken
from explorer.lessons.course.look import NAMES, Look
from explorer.lessons.course.questions.judged import BETWEEN, Judged, numbers_in
from explorer.lessons.course.questions.workings import WORKINGS, Row

BLANKS = ("none", "one", "all")
MOST = 40  # blanks, of whichever working
SHARE, LEAST = 0.02, 0.006  # of a number that a reply may be off; and for numbers worked out from three digits


@dataclass(frozen=True)
class Blanks:
    """The reply is a number for each blank.

    Attributes:
        of: name of the working.
        blanks: "none" for an example, "one" for its result, "all" for all that is worked out.
        change: of the state that it is worked out from.
    """

    of: str
    blanks: str
    change: dict[str, Any]

    def asked(self, look: Look) -> dict[str, Any]:
        rows = self._rows(look)
        lines = [{"says": row.says, "value": None if row in self._open(rows) else written(row.value)} for row in rows]
        return {"kind": "blanks", "rows": lines, "is_example": self.blanks == "none"}

    def judged(self, look: Look, reply: str | None) -> Judged | None:
        rows = self._rows(look)
        blanks = self._open(rows)
        truth = {"truth": [written(row.value) for row in blanks]}
        if reply is None:
            return Judged(None, "", truth)
        if not blanks or (given := numbers_in(reply, len(blanks))) is None:
            return None
        are_right = [is_near(value, row.value) for value, row in zip(given, blanks, strict=True)]
        right, count = sum(are_right), len(blanks)
        words = ngettext(
            "{right} of {count} blank is right.", "{right} of {count} blanks are right.", count, right=right
        )
        return Judged(right == count, words, truth | {"are_right": are_right})

    def counted(self, reply: str) -> str | None:
        given = numbers_in(reply, reply.count(BETWEEN) + 1)
        return BETWEEN.join(f"{value:.6g}" for value in given) if given and len(given) <= MOST else None

    def _rows(self, look: Look) -> list[Row]:
        return WORKINGS[self.of](look.but(self.change))

    def _open(self, rows: list[Row]) -> list[Row]:
        worked_out = [row for row in rows if not row.is_given]
        return {"none": [], "one": worked_out[-1:], "all": worked_out}[self.blanks]


def is_near(value: float, truth: float) -> bool:
    """Whether a number is what somebody gets who works with three digits."""
    return bool(abs(value - truth) <= max(SHARE * abs(truth), LEAST))


def blanks(ask: Fields, check: Fields | None) -> Blanks:
    """Of a lesson's blocks; LessonError where it is none."""
    given = check["working"]
    with at(check.lines["working"]):
        if not isinstance(given, Fields):
            raise ValueError(f"“working” is a mapping with “of” and “blanks”, got {given!r:.60}")
    taken(given, {"of": str, "blanks": str, **dict.fromkeys(NAMES, (str, int, float))}, ("of", "blanks"))
    with at(given.line):
        if given["of"] not in WORKINGS:
            raise ValueError(f"“{given['of']}” is no working; there are {', '.join(WORKINGS)}")
        if given["blanks"] not in BLANKS:
            raise ValueError(f"“blanks” are one of {', '.join(BLANKS)}, got {given['blanks']!r:.60}")
    change = {name: value for name, value in given.items() if name not in ("of", "blanks")}
    return Blanks(given["of"], given["blanks"], change)
