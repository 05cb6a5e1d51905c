"""What all kinds of changes share."""

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import ClassVar

from explorer.language import _, look_up
from explorer.state.errors import UserError
from explorer.state.interventions.axes import axis
from explorer.state.interventions.places import Positions
from model.config import ModelConfig

TAP = re.compile(r"(blocks\.\*\.)?[a-z][\w.]*[a-z]", re.ASCII)
Text = Callable[[tuple[int, ...]], str]  # token ids -> how they are written
PLACE = re.compile(r"(?:blocks\.(?P<layer>\d+)\.)?(?P<name>.+)")


def as_ids(token_ids: tuple[int, ...]) -> str:
    return ".".join(map(str, token_ids))


@dataclass(frozen=True)
class Intervention:
    """A change to a captured value, which all that is computed from it follows.

    Its hooks are in `explorer/tracing/interventions`, what they make in NumPy in `explorer/analysis/interventions`.

    Attributes:
        operation: what the kind is called in text.
        least, most: bounds of the amount; both 0 where the kind takes none.
        whole: whether the amount is a whole number.
        taps: the only values that the kind makes sense at, and there of the whole of them; None: all.
        values: likewise, a pattern of their names, and in words which they are; None: all.
        is_whole: whether it changes all parts of a value.
        is_everywhere: whether it does so at all positions.
        names: an example of what the kind needs the name of, such as a direction; "" where it needs none.
        tap: the value's name.
        amount: by how much.
        index: the part that is changed, of a value a head its head, else of its last axis; None: all of it.
        positions: those that are changed, counted from the first token that the model sees; None: all.
        by: the name of what it needs.

    Raises:
        UserError: it makes no sense of any model.
    """

    operation: ClassVar[str]
    least: ClassVar[float] = 0.0
    most: ClassVar[float] = 0.0
    whole: ClassVar[bool] = False
    taps: ClassVar[tuple[str, ...] | None] = None
    values: ClassVar[tuple[re.Pattern, str] | None] = None
    is_whole: ClassVar[bool] = False
    is_everywhere: ClassVar[bool] = False
    names: ClassVar[str] = ""

    tap: str
    amount: float = 0.0
    index: int | None = None
    positions: Positions | None = None
    by: str = ""

    def __post_init__(self):
        if not TAP.fullmatch(self.tap):
            told = _("an edit changes a value with a name such as blocks.0.attn.z, got {got!r}", got=self.tap[:80])
            raise UserError(told)
        if self.taps and (self.tap not in self.taps or self.index is not None):
            told = _("{kind!r} changes the whole of {taps}, got {got}")
            raise UserError(told.format(kind=self.operation, taps=_(" or ").join(self.taps), got=self.place))
        if self.values and (not self.values[0].fullmatch(self.tap) or (self.is_whole and self.index is not None)):
            told = _("{kind!r} changes {values}, got {got}")
            values = look_up(self.values[1])
            raise UserError(told.format(kind=self.operation, values=values, got=self.place[:80]))
        if self.is_everywhere and self.positions:
            told = _("{kind!r} holds at all positions, leave out @{positions}")
            raise UserError(told.format(kind=self.operation, positions=self.positions))
        if bool(self.by) != bool(self.names):
            raise UserError(self.unnamed())
        if not self.least <= self.amount <= self.most or (self.whole and self.amount % 1):
            told = _("the amount of {kind!r} is a number from {least:,.0f} to {most:,.0f}, got {got!r}")
            if self.whole:
                told = _("the amount of {kind!r} is a whole number from {least:,.0f} to {most:,.0f}, got {got!r}")
            limits = {"least": self.least, "most": self.most}
            raise UserError(told.format(kind=self.operation, got=self.amount, **limits))

    def unnamed(self) -> str:
        """What is told where `by` is missing or too much."""
        if not self.names:
            return _("{kind!r} is written without a name, got {got!r}", kind=self.operation, got=self.by[:80])
        return _("{kind!r} needs a name after it, such as {example}", kind=self.operation, example=self.names)

    @property
    def place(self) -> str:
        part = self.tap if self.index is None else f"{self.tap}.{self.index}"
        return part if self.positions is None else f"{part}@{self.positions}"

    @property
    def known_by(self) -> str:
        """Its text but for the amount: a run has one of each."""
        return "*".join(filter(None, (self.place, self.operation, self.by)))

    def __str__(self) -> str:
        return f"{self.known_by}*{_shortest(self.amount)}" if self.most > self.least else self.known_by

    @property
    def least_tokens(self) -> int:
        """How many tokens a text must have for it."""
        return 0

    def of_prompt(self, prompt: Sequence[int]) -> "Intervention":
        """The same in a run with these ids of a prompt."""
        return self

    def taps_in(self, config: ModelConfig) -> tuple[str, ...]:
        """Names of the values that it changes in a model: its own."""
        return (self.tap,)

    def words(self, config: ModelConfig, text: Text = as_ids) -> str:
        """What it does and where, as in "head 1 of layer 2 silenced, at position 3".

        Args:
            text: how tokens are written.
        """
        said = self.what(config, text)
        return said if self.positions is None else _("{change}, {where}", change=said, where=self.positions.words())

    def what(self, config: ModelConfig, text: Text = as_ids) -> str:
        """What it does, as in "head 1 of layer 2 silenced"."""
        raise NotImplementedError

    def part(self) -> tuple[str | None, str, str | None]:
        """The layer, the value's name in it, and the part that is changed, in words; None where there is none."""
        layer, name = PLACE.fullmatch(self.tap).group("layer", "name")
        return layer, name, None if self.index is None else look_up(axis(self.tap).one, index=self.index)

    def reaches(self, tap: str) -> bool:
        """Whether it acts on a value: its own or, where it is the angles of positions, on those of all layers."""
        return tap == self.tap or (tap, self.tap) == ("local_rope.angles", "rope.angles")

    def check(self, config: ModelConfig, taps: Collection[str]):
        """UserError if a model has not what it changes.

        Args:
            config: of the model.
            taps: names of the values it computes.
        """
        for tap in self.taps_in(config):
            if tap not in taps:
                raise UserError(_("this model has no value {tap} that could be changed", tap=tap))
        furthest = self.positions.furthest if self.positions else 0
        if furthest >= config.context_length:
            told = _("this model sees positions 0 to {last}, got {got}", last=config.context_length - 1, got=furthest)
            raise UserError(told)
        parts = axis(self.tap)
        last = parts.size(config) - 1
        if self.index is not None and not 0 <= self.index <= last:
            raise UserError(look_up(parts.limits, tap=self.tap, last=last, index=self.index))


def _shortest(amount: float) -> str:
    """The shortest text that is read as the same number."""
    return str(int(amount)) if amount % 1 == 0 else repr(float(amount))
