"""How far a value is from what it should be."""

from dataclasses import dataclass

import torch
from torch import Tensor

from explorer.analysis.rounding import tolerance

ALLOWED = tolerance("float32")  # of a token's largest number
SMALLEST = 1e-30


@dataclass(frozen=True)
class Off:
    """How far a value is from what it should be.

    Attributes:
        largest: of the differences.
        scale: of what it should be, the largest.
        by_position: (T,) how many times as much as rounding explains.
    """

    largest: float
    scale: float
    by_position: Tensor

    @classmethod
    def of(cls, seen: Tensor, wanted: Tensor) -> "Off":
        if seen.shape != wanted.shape:
            return cls(float("inf"), 0.0, torch.full((len(seen),), float("inf")))
        same = (seen == wanted) | (seen.isnan() & wanted.isnan())
        apart = torch.where(same, 0.0, (seen - wanted).abs()).nan_to_num(float("inf"), float("inf"))
        sizes = torch.maximum(seen.abs(), wanted.abs()).nan_to_num(0.0, 0.0, 0.0).amax(-1)
        return cls(
            apart.max().item(),
            wanted.nan_to_num(0.0, 0.0, 0.0).abs().max().item(),
            apart.amax(-1) / (ALLOWED * sizes + SMALLEST),
        )

    @property
    def times(self) -> float:
        return self.by_position.max().item()

    @property
    def differs(self) -> bool:
        return not self.times <= 1
