"""Comparison of two runs."""

from dataclasses import dataclass

import numpy as np

from explorer.architecture.token_axes import token_axes
from explorer.state.alignment import Alignment, Pins, align_tokens
from explorer.tracing.trace import Trace


@dataclass(frozen=True, eq=False)
class Comparison:
    """A run and another that it is compared with.

    Attributes:
        trace: of the run, "A".
        other: of the other run, "B".
        alignment: of their tokens.
        is_unchanged: whether the other is the same run without its interventions.
        pins: pairs of positions that the user aligned.
        prompts: numbers of prompt tokens of A and B; None: all tokens.
    """

    trace: Trace
    other: Trace
    alignment: Alignment
    is_unchanged: bool = False
    pins: Pins = ()
    prompts: tuple[int, int] | None = None

    @classmethod
    def from_traces(cls, trace: Trace, other: Trace, pins: Pins = ()) -> "Comparison":
        """Return the comparison of two runs, with their tokens aligned by text."""
        unchanged = (
            bool(trace.edits) and not other.edits and (trace.model, trace.token_ids) == (other.model, other.token_ids)
        )
        return cls(trace, other, align_tokens(trace.tokens, other.tokens, pins), unchanged, pins)

    @classmethod
    def with_unchanged(cls, trace: Trace) -> "Comparison":
        """Return the comparison of a run that has interventions with its `baseline`."""
        return cls.from_traces(trace, trace.baseline)

    @property
    def runs(self) -> tuple[Trace, Trace]:
        """Both traces, A first."""
        return self.trace, self.other

    def aligned_other(self, name: str) -> np.ndarray:
        """Return a value of run B at the tokens of run A: NaN along its token axes where a token has no partner.

        Raises:
            KeyError: run B captured no such value.
        """
        value = self.other[name]
        for axis in () if self.alignment.is_identity else token_axes(name):
            value = self.take_aligned(value, axis)
        return value

    def take_aligned(self, values: np.ndarray, axis: int = 0) -> np.ndarray:
        """Reorder an axis over the tokens of run B to the tokens of run A; NaN for gaps."""
        indices = np.array([-1 if partner is None else partner for partner in self.alignment.partners])
        aligned = np.take(values, indices, axis=axis)
        gaps = np.expand_dims(indices < 0, tuple(range(1, aligned.ndim - (axis % aligned.ndim))))
        return np.where(gaps, np.nan, aligned) if gaps.any() else aligned

    @property
    def prompt_ids(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Token ids of both prompts, A first."""
        counts = self.prompts or (len(self.trace), len(self.other))
        return self.trace.token_ids[: counts[0]], self.other.token_ids[: counts[1]]

    @property
    def is_comparable(self) -> bool:
        """True if tokens of one run are aligned with tokens of the other."""
        return self.alignment.kind != "none"
