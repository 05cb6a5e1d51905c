"""Rendering of one panel for two runs."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from explorer.tracing.comparison import Comparison


@dataclass(frozen=True)
class TwoRunRenderer:
    """Functions that draw figures of one kind for two runs.

    Attributes:
        share_scale: (figure, other) -> the figure with the colour and value ranges of both.
        difference: (first, second, comparison, title) -> the figure of A − B; raises NoDifferenceError if there
            is none.
    """

    share_scale: Callable[[Any, Any], Any]
    difference: Callable[[Any, Any, Comparison, str], Any]
