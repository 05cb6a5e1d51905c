"""What every formula of a captured value can be asked."""

from typing import Protocol

from explorer.explain.source import Source
from explorer.explain.working import Index, Working
from explorer.tracing.trace import Trace


class Formula(Protocol):
    """How a captured value comes from earlier ones.

    Attributes:
        source: the line of the model that computes it.
    """

    source: Source

    def working(self, trace: Trace, at: Index) -> Working:
        """Part of the value: the element at an index of one number an axis, or all of it where each is a whole slice.

        What is all of one axis, such as the logits after one token, takes a slice there alone.
        """
