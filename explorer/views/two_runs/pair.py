"""What can be made of the pictures of two runs."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from explorer.tracing.comparison import Comparison


@dataclass(frozen=True)
class Pair:
    """Of a kind of picture.

    Attributes:
        on_one_scale: (picture, other) -> the picture, with the colours and the range of values that hold for both.
        difference: (first, second, comparison, title) -> the first less the second; `Incomparable` where there is none.
    """

    on_one_scale: Callable[[Any, Any], Any]
    difference: Callable[[Any, Any, Comparison, str], Any]
