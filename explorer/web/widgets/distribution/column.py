"""A stage from logit to probability as a column of a table."""

from collections.abc import Callable
from dataclasses import dataclass

from explorer.analysis.sampling_table import Row


@dataclass(frozen=True)
class Column:
    """A stage.

    Attributes:
        name: tells columns apart.
        title: its heading, of one line or two.
        about: what the stage does, in a sentence.
        cell: a token's number or mark, "" where the token was cut before.
        arithmetic: how that comes about.
    """

    name: str
    title: str
    about: str
    cell: Callable[[Row], str]
    arithmetic: Callable[[Row], str]


def score(value: float) -> str:
    """Two decimals, as logits stand below one another, with a true minus sign."""
    return f"{round(value, 2) + 0.0:.2f}".replace("-", "−")


def bracketed(value: float) -> str:
    """A score after a minus sign."""
    return f"({score(value)})" if value < 0 else score(value)
