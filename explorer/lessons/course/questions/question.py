"""Protocol of questions, grades of replies, and numbers in replies."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from explorer.explain.notation import format_number
from explorer.lessons.course.evaluation_context import EvaluationContext

SEPARATOR = "_"  # between the numbers of a reply; URLs keep it unescaped
NUM_BINS = 10  # in which a class's numbers are counted


@dataclass(frozen=True)
class Grade:
    """The grade of a reply, with the true answer.

    Attributes:
        is_right: None if there is no reply and only the true answer was requested.
        text: the verdict in a sentence or two.
        truth: data with which the widget draws the true answer.
    """

    is_right: bool | None
    text: str
    truth: Mapping[str, Any] = field(default_factory=dict)


class Question(Protocol):
    """Protocol of a lesson's question; the true answer is computed from the run each time."""

    def prompt_payload(self, context: EvaluationContext) -> dict[str, Any]:
        """Return the widget's data for the question, with its "kind", and without the true answer."""

    def grade(self, context: EvaluationContext, reply: str | None) -> Grade | None:
        """Grade a reply; None for an invalid one. Without a reply, return only the true answer."""

    def tally_key(self, reply: str) -> str | None:
        """Return the key under which a class's equal replies are counted; None for an invalid reply. Uses no run."""


def format_quantity(value: float) -> str:
    """Format a number of a run: counts in full, other numbers with three digits."""
    is_count = float(value).is_integer() and (abs(value) >= 2 or value == 0)
    return f"{int(value):,}".replace("-", "−") if is_count else format_number(value)


def parse_number(text: str) -> float | None:
    """Parse a number that a person may have written; None for anything else."""
    if SEPARATOR in text:  # which Python takes within a number
        return None
    try:
        value = float(text.strip().replace("−", "-").replace(",", "."))
    except ValueError:
        return None
    return value if abs(value) < 1e12 else None  # nor NaN


def parse_numbers(reply: str, count: int) -> list[float] | None:
    """Parse a reply of `count` numbers; None for anything else."""
    numbers = [parse_number(part) for part in reply.split(SEPARATOR)]
    return numbers if len(numbers) == count and None not in numbers else None


def bin_index(value: float, lowest: float, highest: float) -> int:
    """Return the index of a number's bin on an axis, from 0; numbers beyond an end are in the bin there."""
    return max(0, min(NUM_BINS - 1, int(NUM_BINS * (value - lowest) / (highest - lowest))))
