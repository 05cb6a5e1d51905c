"""Numerical tolerance: whether a difference from a float64 recomputation is rounding error."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

# Type of a model's numbers -> how many half units in the last place, relative to the terms that a value is made of
# (`Working.sizes`), still count as rounding. Measured over all kinds of models of the tests, untrained and trained
# checkpoints, with and without edits, of 1, 30 and 256 tokens, and one of GPT-2 small's size, of 512: rounding is at
# most 20 of them in float32 (what a head fetches; a linear map 10) and 2.4 in float16 and bfloat16, which add up in
# float32 and round once. A value that is 1 % too large is off by at least 12,400 in float32, the least of all a score
# of two vectors almost at right angles; in float16 by at least 1.5, in bfloat16 by 0.2, so that there 1 % can be
# rounding: 5 % is none in any figure's mark.
UNITS = {"float32": 512, "float16": 4, "bfloat16": 4}
# Half a unit in the last place of 1; and the smallest normal number, below which rounding is no longer relative.
HALF_UNIT = {"float32": 2.0**-24, "float16": 2.0**-11, "bfloat16": 2.0**-8}
MIN_NORMAL = {"float32": 2.0**-126, "float16": 2.0**-14, "bfloat16": 2.0**-126}
# The same of whole runs, whose rounding adds up: how far numbers of size 1 may lie apart in two of them. Measured on
# runs that differ in nothing else, rotary positions shifted by 1 to 4,096: in float32 at most 5 half units for each
# radian of the largest angle, which is rounded too; in float16 and bfloat16 at most 13, of 1 or of a surprisal's bits.
RUN_UNITS = {"float32": 512, "float16": 32, "bfloat16": 32}
RADIAN_UNITS = 16  # of float32, in which angles are, whatever the type of the other numbers


def tolerance(dtype: str) -> float:
    """Return the relative tolerance of a value, as a fraction of the size of its terms."""
    return UNITS[dtype] * HALF_UNIT[dtype]


def rounding_threshold(dtype: str, angle: float = 0.0) -> float:
    """Return the smallest difference of two runs that rounding does not explain, for numbers of size 1.

    Args:
        angle: the largest rotation angle, if the runs rotate by different ones.
    """
    return max(RUN_UNITS[dtype] * HALF_UNIT[dtype], RADIAN_UNITS * HALF_UNIT["float32"] * angle)


@dataclass(frozen=True)
class RecomputationCheck:
    """Result of comparing values with their recomputation.

    Attributes:
        error: the largest difference; NaN if one is NaN.
        times: the largest ratio of a difference to its tolerance; NaN if undefined.
    """

    error: float
    times: float

    @classmethod
    def from_arrays(
        cls, dtype: str, values: np.ndarray, recomputed: np.ndarray, sizes: np.ndarray | float
    ) -> "RecomputationCheck":
        """Compare values with their recomputation; `sizes` are the sizes of the terms of each value."""
        with np.errstate(all="ignore"):  # infinite and missing numbers have a say, below
            errors = np.abs(values - recomputed)
            allowed = tolerance(dtype) * np.abs(sizes) + MIN_NORMAL[dtype]
            times = np.where(np.isfinite(allowed), errors / allowed, np.nan)
        return cls(float(np.max(errors)), float(np.max(times)))  # unlike Python's, this max keeps a NaN

    @classmethod
    def worst(cls, checks: Sequence["RecomputationCheck"]) -> "RecomputationCheck":
        """Combine the checks of parts of a value into the check of the whole."""
        return cls(*(float(np.max([getattr(check, field) for check in checks])) for field in ("error", "times")))

    @property
    def is_within_tolerance(self) -> bool:
        """True if rounding explains all differences; False for NaN."""
        return self.times <= 1


def largest_error(checks: Iterable[RecomputationCheck]) -> float:
    """Return the largest error of several checks; NaN if one is NaN."""
    return float(np.max([check.error for check in checks]))
