"""Whether a difference is rounding: how far numbers may lie from the same numbers worked out again in float64."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

# Type of a model's numbers -> how many half units in the last place, relative to the terms that a value is made of
# (`Working.sizes`), still count as rounding. Measured over all kinds of models of the tests, untrained and trained
# checkpoints, with and without edits, of 1, 30 and 256 tokens, and one of GPT-2 small's size, of 512: rounding is at
# most 20 of them in float32 (what a head fetches; a linear map 10) and 2.4 in float16 and bfloat16, which add up in
# float32 and round once. A value that is 1 % too large is off by at least 12,400 in float32, the least of all a score
# of two vectors almost at right angles; in float16 by at least 1.5, in bfloat16 by 0.2, so that there 1 % can be
# rounding: 5 % is none in any picture's mark.
UNITS = {"float32": 512, "float16": 4, "bfloat16": 4}
# Half a unit in the last place of 1; and the smallest normal number, below which rounding is no longer relative.
HALF_UNIT = {"float32": 2.0**-24, "float16": 2.0**-11, "bfloat16": 2.0**-8}
SMALLEST = {"float32": 2.0**-126, "float16": 2.0**-14, "bfloat16": 2.0**-126}
# The same of whole runs, whose rounding adds up: how far numbers of size 1 may lie apart in two of them. Measured on
# runs that differ in nothing else, rotary positions shifted by 1 to 4,096: in float32 at most 5 half units for each
# radian of the largest angle, which is rounded too; in float16 and bfloat16 at most 13, of 1 or of a surprisal's bits.
RUN_UNITS = {"float32": 512, "float16": 32, "bfloat16": 32}
RADIAN_UNITS = 16  # of float32, in which angles are, whatever the type of the other numbers


def tolerance(dtype: str) -> float:
    """What a value may be off by, as a share of the terms that it is made of."""
    return UNITS[dtype] * HALF_UNIT[dtype]


def resolution(dtype: str, angle: float = 0.0) -> float:
    """The least difference of two runs that rounding does not explain, of numbers of size 1.

    Args:
        angle: the largest, where the runs turn by different ones.
    """
    return max(RUN_UNITS[dtype] * HALF_UNIT[dtype], RADIAN_UNITS * HALF_UNIT["float32"] * angle)


@dataclass(frozen=True)
class Check:
    """Numbers held against the same numbers worked out again.

    Attributes:
        error: the largest difference; NaN where one is not a number.
        times: how many times as large as what counts as rounding a difference is at most; NaN where there is no saying.
    """

    error: float
    times: float

    @classmethod
    def of(cls, dtype: str, values: np.ndarray, again: np.ndarray, sizes: np.ndarray | float) -> "Check":
        """Of values in a type of numbers; `sizes` are those of the terms that each is made of."""
        with np.errstate(all="ignore"):  # infinite and missing numbers have a say, below
            errors = np.abs(values - again)
            allowed = tolerance(dtype) * np.abs(sizes) + SMALLEST[dtype]
            times = np.where(np.isfinite(allowed), errors / allowed, np.nan)
        return cls(float(np.max(errors)), float(np.max(times)))  # unlike Python's, this max keeps a NaN

    @classmethod
    def worst(cls, checks: Sequence["Check"]) -> "Check":
        """Of parts of a value, that of the whole."""
        return cls(*(float(np.max([getattr(check, field) for check in checks])) for field in ("error", "times")))

    @property
    def passed(self) -> bool:
        """Whether rounding explains all of it; never of NaN."""
        return self.times <= 1


def largest_error(checks: Iterable[Check]) -> float:
    """Of all; NaN if of one."""
    return float(np.max([check.error for check in checks]))
