"""The deviation of a value from its expected value, in units of the rounding tolerance."""

from dataclasses import dataclass

import torch
from torch import Tensor

from explorer.analysis.tolerance import tolerance

TOLERANCE = tolerance("float32")  # relative to a position's largest number
MIN_SCALE = 1e-30


@dataclass(frozen=True)
class Deviation:
    """The deviation of a value from its expected value.

    Attributes:
        largest: the largest absolute difference.
        scale: the largest absolute expected number.
        by_position: (T,) largest difference at each position / rounding tolerance.
    """

    largest: float
    scale: float
    by_position: Tensor

    @classmethod
    def between(cls, actual: Tensor, expected: Tensor) -> "Deviation":
        """Compare two tensors; infinite for different shapes, 0 where both are NaN."""
        if actual.shape != expected.shape:
            return cls(float("inf"), 0.0, torch.full((len(actual),), float("inf")))
        same = (actual == expected) | (actual.isnan() & expected.isnan())
        difference = torch.where(same, 0.0, (actual - expected).abs()).nan_to_num(float("inf"), float("inf"))
        magnitudes = torch.maximum(actual.abs(), expected.abs()).nan_to_num(0.0, 0.0, 0.0).amax(-1)
        return cls(
            difference.max().item(),
            expected.nan_to_num(0.0, 0.0, 0.0).abs().max().item(),
            difference.amax(-1) / (TOLERANCE * magnitudes + MIN_SCALE),
        )

    @property
    def ratio_to_tolerance(self) -> float:
        return self.by_position.max().item()

    @property
    def differs(self) -> bool:
        return not self.ratio_to_tolerance <= 1
