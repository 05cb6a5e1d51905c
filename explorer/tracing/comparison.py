"""Two runs beside each other."""

from dataclasses import dataclass

import numpy as np

from explorer.architecture.token_axes import token_axes
from explorer.state.alignment import Alignment, Pins, aligned
from explorer.tracing.trace import Trace


@dataclass(frozen=True, eq=False)
class Comparison:
    """A run, and another that it is compared with.

    Attributes:
        trace: of the run, "A".
        other: of the other, "B".
        alignment: of their tokens.
        is_unchanged: whether the other is the same run without its interventions.
        pins: tokens that stand beside each other because somebody put them there.
        prompts: how many tokens of either are its prompt's; None: all.
    """

    trace: Trace
    other: Trace
    alignment: Alignment
    is_unchanged: bool = False
    pins: Pins = ()
    prompts: tuple[int, int] | None = None

    @classmethod
    def of(cls, trace: Trace, other: Trace, pins: Pins = ()) -> "Comparison":
        """Two runs, their tokens beside each other by their texts."""
        unchanged = (
            bool(trace.edits) and not other.edits and (trace.model, trace.token_ids) == (other.model, other.token_ids)
        )
        return cls(trace, other, aligned(trace.tokens, other.tokens, pins), unchanged, pins)

    @classmethod
    def with_unchanged(cls, trace: Trace) -> "Comparison":
        """A changed run and its `baseline`."""
        return cls.of(trace, trace.baseline)

    @property
    def runs(self) -> tuple[Trace, Trace]:
        """Both, A first."""
        return self.trace, self.other

    def of_other(self, name: str) -> np.ndarray:
        """A value of the other run at the tokens of the first: NaN along its token axes where one has no partner.

        Raises:
            KeyError: the other run captured no such value.
        """
        value = self.other[name]
        for axis in () if self.alignment.is_identity else token_axes(name):
            value = self.at_partners(value, axis)
        return value

    def at_partners(self, values: np.ndarray, axis: int = 0) -> np.ndarray:
        """An array that counts the other's tokens along an axis, in the order of the first's; NaN for gaps."""
        places = np.array([-1 if partner is None else partner for partner in self.alignment.partners])
        taken = np.take(values, places, axis=axis)
        gaps = np.expand_dims(places < 0, tuple(range(1, taken.ndim - (axis % taken.ndim))))
        return np.where(gaps, np.nan, taken) if gaps.any() else taken

    @property
    def prompt_ids(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Of both."""
        counts = self.prompts or (len(self.trace), len(self.other))
        return self.trace.token_ids[: counts[0]], self.other.token_ids[: counts[1]]

    @property
    def comparable(self) -> bool:
        """Whether tokens of the one stand for tokens of the other."""
        return self.alignment.kind != "none"
