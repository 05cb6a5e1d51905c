"""What is said of a reply, and what every question has."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from explorer.explain.notation import number
from explorer.lessons.course.look import Look

BETWEEN = "_"  # parts of a reply that has several, which addresses leave as it is
BINS = 10  # in which a class's numbers are counted


@dataclass(frozen=True)
class Judged:
    """A reply beside the truth.

    Attributes:
        is_right: None where nobody replied and the truth was asked for.
        words: the verdict in a sentence or two.
        truth: what the widget draws of it, beside what it drew of the question.
    """

    is_right: bool | None
    words: str
    truth: Mapping[str, Any] = field(default_factory=dict)


class Question(Protocol):
    """One kind of question. Nothing of it is kept: what is true is worked out each time."""

    def asked(self, look: Look) -> dict[str, Any]:
        """What the widget needs to ask it, its "kind" among that; nothing of the truth."""

    def judged(self, look: Look, reply: str | None) -> Judged | None:
        """What is said of a reply; None of one that is none, or where none is given, the truth alone."""

    def counted(self, reply: str) -> str | None:
        """As what a reply is counted among those of a class, without a look at any run; None for one that is none."""


def written(value: float) -> str:
    """A number of a run: a count as it is, any other with three digits."""
    is_count = float(value).is_integer() and (abs(value) >= 2 or value == 0)
    return f"{int(value):,}".replace("-", "−") if is_count else number(value)


def as_number(text: str) -> float | None:
    """A number that a person may have written; None for anything else."""
    if BETWEEN in text:  # which Python takes within a number
        return None
    try:
        value = float(text.strip().replace("−", "-").replace(",", "."))
    except ValueError:
        return None
    return value if abs(value) < 1e12 else None  # nor NaN


def numbers_in(reply: str, count: int) -> list[float] | None:
    """A reply's numbers; None where they are not as many, or one is none."""
    found = [as_number(part) for part in reply.split(BETWEEN)]
    return found if len(found) == count and None not in found else None


def bin_of(value: float, lowest: float, highest: float) -> int:
    """In which part of an axis a number is counted, from 0; what lies beyond an end is in the part there."""
    return max(0, min(BINS - 1, int(BINS * (value - lowest) / (highest - lowest))))
