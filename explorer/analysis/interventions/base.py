"""Base class for recomputing interventions, independent of the hooks that apply them."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from explorer.state.interventions import Intervention
from explorer.tracing.trace import Trace


@dataclass(frozen=True)
class Effect:
    """The effect of an intervention on a value, in float64.

    Interventions that change how a value is computed do nothing here: the value's own formula reads them from the
    trace.

    Attributes:
        edit: the intervention.
        adds: whether the changed value has a term that is not linear in the original value.
    """

    adds: ClassVar[bool] = False

    edit: Intervention

    def recompute(self, trace: Trace, value: np.ndarray, sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Apply the intervention to a whole captured value, (H, T, N) or (T, N), and to its `sizes`.

        `sizes` are the sizes of the terms that each number is made of (`explain.calculation.Calculation`).
        """
        return value, sizes

    def symbol(self) -> str:
        """Return the effect in symbols, such as "× 2"; "" if the value's own formula contains it."""
        return ""

    def apply_linear(self, trace: Trace, x: np.ndarray, position: int | np.ndarray | None) -> np.ndarray:
        """Apply the linear part to vectors (…, N), without what the intervention `adds`.

        The matrix is symmetric, so that the same product maps a direction read after the intervention to the
        direction before it.

        Args:
            position: position of the vectors, or (T,) positions for x (…, T, N). May be None if the intervention
                acts at all positions.
        """
        return x

    def position_mask(self, position: int | np.ndarray | None) -> np.ndarray:
        """Return whether the intervention acts at a position, (1,) booleans; (T, 1) for several positions."""
        return is_active(self.edit, position)[..., None]

    def element_mask(self, shape: tuple[int, ...]) -> np.ndarray:
        """Return the elements that the intervention changes, as booleans of the value's shape (H, T, N) or (T, N)."""
        rows = self.position_mask(np.arange(shape[-2]))  # (T, 1)
        indices = slice(None) if self.edit.index is None else self.edit.index
        mask = np.zeros(shape, dtype=bool)
        if len(shape) == 3:
            mask[indices] = rows
        else:
            mask[:, indices] = rows if self.edit.index is None else rows[:, 0]
        return mask


def is_active(intervention: Intervention, position: int | np.ndarray | None) -> np.ndarray:
    """Return whether an intervention acts at a position, () booleans; (T,) for several.

    The position may be None if the intervention acts at all positions.
    """
    if intervention.positions is None:
        return np.ones(np.shape(position), dtype=bool)
    if position is None:
        raise ValueError(f"{intervention} holds at some positions only: say at which the vectors are")
    return np.vectorize(intervention.positions.__contains__, otypes=[bool])(position)
