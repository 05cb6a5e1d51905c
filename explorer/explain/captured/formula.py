"""The protocol of formulas of captured values."""

from typing import Protocol

from explorer.explain.calculation import Calculation, Index
from explorer.explain.source_line import SourceLine
from explorer.tracing.trace import Trace


class Formula(Protocol):
    """The formula of a captured value.

    Attributes:
        source: the line of the model that computes it.
    """

    source: SourceLine

    def calculate(self, trace: Trace, index: Index) -> Calculation:
        """Calculate the element at an index, or the whole value if all indices are full slices.

        Where a value needs all of one axis, such as the logits after one token, only that axis has a slice.
        """
