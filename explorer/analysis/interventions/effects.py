"""The effect of each kind of intervention."""

from typing import ClassVar

import numpy as np

from explorer.analysis.interventions.base import Effect
from explorer.state.interventions import (
    AddDirection,
    Clamp,
    DropEdge,
    Intervention,
    MaskEdge,
    MeanAblation,
    NormReplacement,
    Patch,
    PatchMean,
    PositionShift,
    RemoveDirection,
    RopeBaseReplacement,
    Scale,
    ZeroAblation,
)
from explorer.tracing.trace import Trace
from explorer.translations import _


class ScaleEffect(Effect):
    """Multiplication of the value by a factor."""

    def recompute(self, trace: Trace, value: np.ndarray, sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        factors = np.where(self.element_mask(value.shape), float(self.edit.factor), 1.0)
        return value * factors, sizes * np.abs(factors)

    def symbol(self) -> str:
        return f"× {format_amount(self.edit.factor)}"

    def apply_linear(self, trace: Trace, x: np.ndarray, position: int | np.ndarray | None) -> np.ndarray:
        return scale_selected(self, x, position, self.edit.factor)


class ReplaceEffect(Effect):
    """Replacement of the value: nothing of the original is left."""

    adds: ClassVar[bool] = True

    def apply_linear(self, trace: Trace, x: np.ndarray, position: int | np.ndarray | None) -> np.ndarray:
        return scale_selected(self, x, position, 0.0)


class ClampEffect(ReplaceEffect):
    """Replacement by a constant."""

    def recompute(self, trace: Trace, value: np.ndarray, sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        mask = self.element_mask(value.shape)
        return np.where(mask, self.edit.amount, value), np.where(mask, abs(self.edit.amount), sizes)

    def symbol(self) -> str:
        return _("held at {value}", value=format_amount(self.edit.amount))


class MeanEffect(ReplaceEffect):
    """Replacement by the mean over the first positions."""

    def recompute(self, trace: Trace, value: np.ndarray, sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        mask = self.element_mask(value.shape)
        means, mean_sizes = (np.average(x[..., : self.edit.over, :], axis=-2)[..., None, :] for x in (value, sizes))
        return np.where(mask, means, value), np.where(mask, mean_sizes, sizes)

    def symbol(self) -> str:
        return _("mean over positions")

    def position_mask(self, position: int | np.ndarray | None) -> np.ndarray:
        mask = super().position_mask(position)
        return mask if self.edit.over is None else mask & (np.asarray(position) < self.edit.over)[..., None]


class PatchEffect(ReplaceEffect):
    """Replacement by the value of another run."""

    def recompute(self, trace: Trace, value: np.ndarray, sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        mask, source_values = (
            self.element_mask(value.shape),
            self.edit.source.rows(0, *value.shape[-2:]).astype(np.float64),
        )
        return np.where(mask, source_values, value), np.where(mask, np.abs(source_values), sizes)

    def symbol(self) -> str:
        return _("the other run’s")

    def position_mask(self, position: int | np.ndarray | None) -> np.ndarray:
        return super().position_mask(position) & self.edit.source.is_set(np.asarray(position))[..., None]


class DropEdgeEffect(Effect):
    """Multiplication of the weight of an attention edge by 0."""

    def recompute(self, trace: Trace, value: np.ndarray, sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        mask = self.element_mask(value.shape)
        return np.where(mask, 0.0, value), np.where(mask, 0.0, sizes)

    def element_mask(self, shape: tuple[int, ...]) -> np.ndarray:
        return super().element_mask(shape) & (np.arange(shape[-1]) == self.edit.key)

    def symbol(self) -> str:
        return "× 0"


class DirectionEffect(Effect):
    """Base class of effects along a direction u."""

    def unit(self, trace: Trace) -> np.ndarray:
        return trace.direction(self.edit.direction)


class RemoveEffect(DirectionEffect):
    """Projection onto the complement of u: x − (x·u) u."""

    def recompute(self, trace: Trace, value: np.ndarray, sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        u, mask = self.unit(trace), self.element_mask(value.shape)
        projection, terms = np.outer(value.dot(u), u), np.outer(np.linalg.norm(sizes, axis=-1), np.abs(u))
        return value - projection * mask, sizes + terms * mask

    def symbol(self) -> str:
        return "− (x·u) u"

    def apply_linear(self, trace: Trace, x: np.ndarray, position: int | np.ndarray | None) -> np.ndarray:
        u = self.unit(trace)
        return x - np.where(self.position_mask(position), (x @ u)[..., None] * u, 0.0)


class AddEffect(DirectionEffect):
    """Addition along u: x + α ‖x‖ u."""

    adds: ClassVar[bool] = True

    def recompute(self, trace: Trace, value: np.ndarray, sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        u, mask = self.unit(trace), self.element_mask(value.shape)
        norms, terms = (np.sqrt((x * x).sum(-1)) * abs(self.edit.amount) for x in (value, sizes))
        added = np.outer(np.sign(self.edit.amount) * norms, u)
        return value + added * mask, sizes + np.outer(terms, np.abs(u)) * mask

    def symbol(self) -> str:
        return f"+ {format_amount(self.edit.amount)} ‖x‖ u"


EFFECTS: dict[type[Intervention], type[Effect]] = {
    **dict.fromkeys((PositionShift, RopeBaseReplacement, NormReplacement, MaskEdge), Effect),  # another formula
    MeanAblation: MeanEffect,
    Patch: PatchEffect,
    PatchMean: PatchEffect,
    Scale: ScaleEffect,
    ZeroAblation: ScaleEffect,
    DropEdge: DropEdgeEffect,
    Clamp: ClampEffect,
    RemoveDirection: RemoveEffect,
    AddDirection: AddEffect,
}


def scale_selected(effect: Effect, x: np.ndarray, position: int | np.ndarray | None, factor: float) -> np.ndarray:
    """Multiply the elements that the intervention changes in vectors (…, N) by a factor."""
    factors = np.ones(x.shape[-1])
    factors[slice(None) if effect.edit.index is None else effect.edit.index] = factor
    return x * np.where(effect.position_mask(position), factors, 1.0).astype(x.dtype)


def format_amount(amount: float) -> str:
    """Format an amount with at most ten digits and a true minus sign."""
    return f"{amount:.10g}".replace("-", "−")
