"""What all kinds of changes share."""

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import ClassVar

from explorer.language import _, look_up
from explorer.state.errors import UserError
from explorer.state.interventions.axes import axis
from model.config import ModelConfig

TAP = re.compile(r"[a-z][\w.]*[a-z]", re.ASCII)


@dataclass(frozen=True)
class Intervention:
    """A change to a captured value, which all that is computed from it follows.

    Its hook is in `explorer/tracing/intervening.py`: this room knows no torch.

    Attributes:
        operation: what the kind is called in text.
        least, most: bounds of the amount; both 0 where the kind takes none.
        whole: whether the amount is a whole number.
        taps: the only values that the kind makes sense at, and there of the whole of them; None: all.
        tap: the value's name.
        amount: by how much.
        index: the part that is changed, of a value a head its head, else of its last axis; None: all of it.

    Raises:
        UserError: it makes no sense of any model.
    """

    operation: ClassVar[str]
    least: ClassVar[float] = 0.0
    most: ClassVar[float] = 0.0
    whole: ClassVar[bool] = False
    taps: ClassVar[tuple[str, ...] | None] = None

    tap: str
    amount: float = 0.0
    index: int | None = None

    def __post_init__(self):
        if not TAP.fullmatch(self.tap):
            told = _("an edit changes a value with a name such as blocks.0.attn.z, got {got!r}", got=self.tap[:80])
            raise UserError(told)
        if self.taps and (self.tap not in self.taps or self.index is not None):
            told = _("{kind!r} changes the whole of {taps}, got {got}")
            raise UserError(told.format(kind=self.operation, taps=_(" or ").join(self.taps), got=self.place))
        if not self.least <= self.amount <= self.most or (self.whole and self.amount % 1):
            told = _("the amount of {kind!r} is a number from {least:,.0f} to {most:,.0f}, got {got!r}")
            if self.whole:
                told = _("the amount of {kind!r} is a whole number from {least:,.0f} to {most:,.0f}, got {got!r}")
            limits = {"least": self.least, "most": self.most}
            raise UserError(told.format(kind=self.operation, got=self.amount, **limits))

    @property
    def place(self) -> str:
        return self.tap if self.index is None else f"{self.tap}.{self.index}"

    @property
    def factor(self) -> float | None:
        """What it multiplies the value by; None where it does something else."""
        return None

    def __str__(self) -> str:
        amount = f"*{_shortest(self.amount)}" if self.most > self.least else ""
        return f"{self.place}*{self.operation}{amount}"

    def words(self, config: ModelConfig) -> str:
        """What it does, as in "head 1 of layer 2 silenced"."""
        raise NotImplementedError

    def check(self, config: ModelConfig, taps: Collection[str]):
        """UserError if a model has not what it changes.

        Args:
            config: of the model.
            taps: names of the values it computes.
        """
        if self.tap not in taps:
            raise UserError(_("this model has no value {tap} that could be changed", tap=self.tap))
        parts = axis(self.tap)
        last = parts.size(config) - 1
        if self.index is not None and not 0 <= self.index <= last:
            raise UserError(look_up(parts.limits, tap=self.tap, last=last, index=self.index))


def _shortest(amount: float) -> str:
    """The shortest text that is read as the same number."""
    return str(int(amount)) if amount % 1 == 0 else repr(float(amount))
