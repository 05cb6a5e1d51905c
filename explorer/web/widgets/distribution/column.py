"""Column of the table of sampling stages."""

from collections.abc import Callable
from dataclasses import dataclass

from explorer.analysis.sampling_table import SamplingRow


@dataclass(frozen=True)
class StageColumn:
    """Column of the table for one sampling stage.

    Attributes:
        name: unique name.
        title: heading of one or two lines.
        description: the stage's effect, in a sentence.
        cell: returns a token's number or mark, "" if the token was cut before.
        arithmetic: returns the calculation of that number.
    """

    name: str
    title: str
    description: str
    cell: Callable[[SamplingRow], str]
    arithmetic: Callable[[SamplingRow], str]


def format_logit(value: float) -> str:
    """Format a logit with two decimals and a true minus sign."""
    return f"{round(value, 2) + 0.0:.2f}".replace("-", "−")


def format_subtracted_logit(value: float) -> str:
    """Format a logit after a minus sign, in parentheses if it is negative."""
    return f"({format_logit(value)})" if value < 0 else format_logit(value)
