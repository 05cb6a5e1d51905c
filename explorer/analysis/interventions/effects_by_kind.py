"""The effect of each kind of intervention."""

from typing import ClassVar

import numpy as np

from explorer.analysis.interventions.effect import Effect
from explorer.language import _
from explorer.state.interventions import (
    Add,
    Base,
    Clamp,
    Drop,
    Intervention,
    Mask,
    Mean,
    Norm,
    Patch,
    PatchMean,
    Remove,
    Scale,
    Shift,
    Zero,
)
from explorer.tracing.trace import Trace


class OfScale(Effect):
    """The value × a factor."""

    def again(self, trace: Trace, value: np.ndarray, sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        factors = np.where(self.where(value.shape), float(self.edit.factor), 1.0)
        return value * factors, sizes * np.abs(factors)

    def symbol(self) -> str:
        return f"× {signed(self.edit.factor)}"

    def share(self, trace: Trace, x: np.ndarray, position: int | np.ndarray | None) -> np.ndarray:
        return multiplied(self, x, position, self.edit.factor)


class Set(Effect):
    """Nothing of the value is left where it is changed: another is put in its place."""

    adds: ClassVar[bool] = True

    def share(self, trace: Trace, x: np.ndarray, position: int | np.ndarray | None) -> np.ndarray:
        return multiplied(self, x, position, 0.0)


class OfClamp(Set):
    """A number."""

    def again(self, trace: Trace, value: np.ndarray, sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        held = self.where(value.shape)
        return np.where(held, self.edit.amount, value), np.where(held, abs(self.edit.amount), sizes)

    def symbol(self) -> str:
        return _("held at {value}", value=signed(self.edit.amount))


class OfMean(Set):
    """The mean over the first positions."""

    def again(self, trace: Trace, value: np.ndarray, sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        chosen = self.where(value.shape)
        means, sizes_of_means = (np.average(x[..., : self.edit.over, :], axis=-2)[..., None, :] for x in (value, sizes))
        return np.where(chosen, means, value), np.where(chosen, sizes_of_means, sizes)

    def symbol(self) -> str:
        return _("mean over positions")

    def acts(self, position: int | np.ndarray | None) -> np.ndarray:
        acts = super().acts(position)
        return acts if self.edit.over is None else acts & (np.asarray(position) < self.edit.over)[..., None]


class OfDonation(Set):
    """What another run has."""

    def again(self, trace: Trace, value: np.ndarray, sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        chosen, given = self.where(value.shape), self.edit.source.rows(0, *value.shape[-2:]).astype(np.float64)
        return np.where(chosen, given, value), np.where(chosen, np.abs(given), sizes)

    def symbol(self) -> str:
        return _("the other run’s")

    def acts(self, position: int | np.ndarray | None) -> np.ndarray:
        return super().acts(position) & self.edit.source.is_put_at(np.asarray(position))[..., None]


class OfDrop(Effect):
    """The weight of an edge × 0."""

    def again(self, trace: Trace, value: np.ndarray, sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        chosen = self.where(value.shape)
        return np.where(chosen, 0.0, value), np.where(chosen, 0.0, sizes)

    def where(self, shape: tuple[int, ...]) -> np.ndarray:
        return super().where(shape) & (np.arange(shape[-1]) == self.edit.key)

    def symbol(self) -> str:
        return "× 0"


class Along(Effect):
    """Of a direction u."""

    def unit(self, trace: Trace) -> np.ndarray:
        return trace.direction(self.edit.recipe)


class OfRemove(Along):
    """x − (x·u) u."""

    def again(self, trace: Trace, value: np.ndarray, sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        u, chosen = self.unit(trace), self.where(value.shape)
        taken, terms = np.outer(value.dot(u), u), np.outer(np.linalg.norm(sizes, axis=-1), np.abs(u))
        return value - taken * chosen, sizes + terms * chosen

    def symbol(self) -> str:
        return "− (x·u) u"

    def share(self, trace: Trace, x: np.ndarray, position: int | np.ndarray | None) -> np.ndarray:
        u = self.unit(trace)
        return x - np.where(self.acts(position), (x @ u)[..., None] * u, 0.0)


class OfAdd(Along):
    """x + α ‖x‖ u."""

    adds: ClassVar[bool] = True

    def again(self, trace: Trace, value: np.ndarray, sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        u, chosen = self.unit(trace), self.where(value.shape)
        lengths, terms = (np.sqrt((x * x).sum(-1)) * abs(self.edit.amount) for x in (value, sizes))
        added = np.outer(np.sign(self.edit.amount) * lengths, u)
        return value + added * chosen, sizes + np.outer(terms, np.abs(u)) * chosen

    def symbol(self) -> str:
        return f"+ {signed(self.edit.amount)} ‖x‖ u"


EFFECTS: dict[type[Intervention], type[Effect]] = {
    **dict.fromkeys((Shift, Base, Norm, Mask), Effect),  # another formula
    Mean: OfMean,
    Patch: OfDonation,
    PatchMean: OfDonation,
    Scale: OfScale,
    Zero: OfScale,
    Drop: OfDrop,
    Clamp: OfClamp,
    Remove: OfRemove,
    Add: OfAdd,
}


def multiplied(effect: Effect, x: np.ndarray, position: int | np.ndarray | None, factor: float) -> np.ndarray:
    """Vectors (…, N), their part that the edit changes × a factor."""
    factors = np.ones(x.shape[-1])
    factors[slice(None) if effect.edit.index is None else effect.edit.index] = factor
    return x * np.where(effect.acts(position), factors, 1.0).astype(x.dtype)


def signed(amount: float) -> str:
    return f"{amount:.10g}".replace("-", "−")
