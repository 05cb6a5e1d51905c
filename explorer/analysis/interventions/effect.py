"""What all kinds of interventions make of captured values, worked out apart from the hooks that make it."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from explorer.state.interventions import Intervention
from explorer.tracing.trace import Trace


@dataclass(frozen=True)
class Effect:
    """What an intervention makes of a value, in float64. Where it makes it be computed in another way, the value's own
    formula asks the trace's edits for that, and nothing more is done here.

    Attributes:
        edit: whose effect it is.
        adds: whether the changed value has something in it that the value from before has no share in.
    """

    adds: ClassVar[bool] = False

    edit: Intervention

    def again(self, trace: Trace, value: np.ndarray, sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """A whole captured value, (H, T, N) or (T, N), from before the edit, and what it is then; with each the sizes
        of the terms that its numbers are made of (`explain.working.Working`)."""
        return value, sizes

    def symbol(self) -> str:
        """The same in symbols, as in "× 2"; "" where the value's own formula says it."""
        return ""

    def share(self, trace: Trace, x: np.ndarray, position: int | np.ndarray | None) -> np.ndarray:
        """What becomes of vectors (…, N) where the edit acts, all but what it `adds`: a product with a symmetric
        matrix, so that a direction that is read after the edit becomes the one that is read before it, too.

        Args:
            position: of the vectors; or each one's, (T,) for x (…, T, N). None will do where the edit acts at all.
        """
        return x

    def acts(self, position: int | np.ndarray | None) -> np.ndarray:
        """Whether it does at a position, (1,) booleans; or at each, (T, 1)."""
        return holds_at(self.edit, position)[..., None]

    def where(self, shape: tuple[int, ...]) -> np.ndarray:
        """Booleans of the shape of a captured value, (H, T, N) or (T, N): the numbers that the edit changes."""
        rows = self.acts(np.arange(shape[-2]))  # (T, 1)
        part = slice(None) if self.edit.index is None else self.edit.index
        chosen = np.zeros(shape, dtype=bool)
        if len(shape) == 3:
            chosen[part] = rows
        else:
            chosen[:, part] = rows if self.edit.index is None else rows[:, 0]
        return chosen


def holds_at(edit: Intervention, position: int | np.ndarray | None) -> np.ndarray:
    """Whether an edit changes a position, () booleans; or each, (T,). None will do where it changes all."""
    if edit.positions is None:
        return np.ones(np.shape(position), dtype=bool)
    if position is None:
        raise ValueError(f"{edit} holds at some positions only: say at which the vectors are")
    return np.vectorize(edit.positions.__contains__, otypes=[bool])(position)
