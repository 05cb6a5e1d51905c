"""Base class of interventions."""

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import ClassVar

from explorer.state.errors import UserError
from explorer.state.interventions.axes import index_axis
from explorer.state.interventions.position_set import PositionSet
from explorer.translations import _, translate
from model.config import ModelConfig

TAP = re.compile(r"(blocks\.\*\.)?[a-z][\w.]*[a-z]", re.ASCII)
Text = Callable[[tuple[int, ...]], str]  # token ids -> how they are written
LOCATION = re.compile(r"(?:blocks\.(?P<layer>\d+)\.)?(?P<name>.+)")


def join_token_ids(token_ids: tuple[int, ...]) -> str:
    """Join token ids by dots."""
    return ".".join(map(str, token_ids))


@dataclass(frozen=True)
class Intervention:
    """A change to a captured value, and to everything that is computed from it.

    Its hooks are in `explorer/tracing/interventions`, the recomputation in NumPy in
    `explorer/analysis/interventions`.

    Attributes:
        operation: name of the kind in text.
        min_amount, max_amount: bounds of the amount; both 0 if the kind has none.
        is_integer: whether the amount is a whole number.
        taps: the only taps that the kind applies to, always as a whole; None: all.
        values: pattern of the taps that the kind applies to, and a description of them; None: all.
        is_whole: whether it changes whole values, without an index.
        is_everywhere: whether it changes all positions.
        argument_example: example of the named argument of the kind, such as a direction; "" if it has none.
        tap: name of the value.
        amount: of the change.
        index: of the head for values of heads, else into the last axis; None: all.
        positions: positions to change, counted from the first token that the model sees; None: all.
        by: the named argument.

    Raises:
        UserError: it is invalid for any model.
    """

    operation: ClassVar[str]
    min_amount: ClassVar[float] = 0.0
    max_amount: ClassVar[float] = 0.0
    is_integer: ClassVar[bool] = False
    taps: ClassVar[tuple[str, ...] | None] = None
    values: ClassVar[tuple[re.Pattern, str] | None] = None
    is_whole: ClassVar[bool] = False
    is_everywhere: ClassVar[bool] = False
    argument_example: ClassVar[str] = ""

    tap: str
    amount: float = 0.0
    index: int | None = None
    positions: PositionSet | None = None
    by: str = ""

    def __post_init__(self):
        if not TAP.fullmatch(self.tap):
            message = _("an edit changes a value with a name such as blocks.0.attn.z, got {got!r}", got=self.tap[:80])
            raise UserError(message)
        if self.taps and (self.tap not in self.taps or self.index is not None):
            message = _("{kind!r} changes the whole of {taps}, got {got}")
            raise UserError(message.format(kind=self.operation, taps=_(" or ").join(self.taps), got=self.location_key))
        if self.values and (not self.values[0].fullmatch(self.tap) or (self.is_whole and self.index is not None)):
            message = _("{kind!r} changes {values}, got {got}")
            values = translate(self.values[1])
            raise UserError(message.format(kind=self.operation, values=values, got=self.location_key[:80]))
        if self.is_everywhere and self.positions:
            message = _("{kind!r} always acts at all positions: remove @{positions}")
            raise UserError(message.format(kind=self.operation, positions=self.positions))
        if bool(self.by) != bool(self.argument_example):
            raise UserError(self.argument_error())
        if not self.min_amount <= self.amount <= self.max_amount or (self.is_integer and self.amount % 1):
            message = _("the amount of {kind!r} is a number from {least:,.0f} to {most:,.0f}, got {got!r}")
            if self.is_integer:
                message = _("the amount of {kind!r} is a whole number from {least:,.0f} to {most:,.0f}, got {got!r}")
            limits = {"least": self.min_amount, "most": self.max_amount}
            raise UserError(message.format(kind=self.operation, got=self.amount, **limits))

    def argument_error(self) -> str:
        """Return the error message for a missing or unexpected `by`."""
        if not self.argument_example:
            return _("{kind!r} takes no name, got {got!r}", kind=self.operation, got=self.by[:80])
        return _(
            "{kind!r} needs a name after it, such as {example}", kind=self.operation, example=self.argument_example
        )

    @property
    def location_key(self) -> str:
        location = self.tap if self.index is None else f"{self.tap}.{self.index}"
        return location if self.positions is None else f"{location}@{self.positions}"

    @property
    def identity_key(self) -> str:
        """Text of the intervention without its amount; unique in a run."""
        return "*".join(filter(None, (self.location_key, self.operation, self.by)))

    def __str__(self) -> str:
        return (
            f"{self.identity_key}*{_shortest(self.amount)}" if self.max_amount > self.min_amount else self.identity_key
        )

    @property
    def min_tokens(self) -> int:
        """Smallest number of tokens that a text must have for it."""
        return 0

    def for_prompt(self, prompt: Sequence[int]) -> "Intervention":
        """Return the intervention for a run with this prompt."""
        return self

    def affected_taps(self, config: ModelConfig) -> tuple[str, ...]:
        """Return the names of the values that it changes in a model: its own."""
        return (self.tap,)

    def describe(self, config: ModelConfig, text: Text = join_token_ids) -> str:
        """Describe the operation and its positions, for example "head 1 of layer 2 silenced, at position 3".

        Args:
            text: formats token ids.
        """
        description = self.describe_operation(config, text)
        return (
            description
            if self.positions is None
            else _("{change}, {where}", change=description, where=self.positions.describe())
        )

    def describe_operation(self, config: ModelConfig, text: Text = join_token_ids) -> str:
        """Describe the operation, for example "head 1 of layer 2 silenced"."""
        raise NotImplementedError

    def target_labels(self) -> tuple[str | None, str, str | None]:
        """Return labels of the layer, the value in it, and the element that is changed; None if there is none."""
        layer, name = LOCATION.fullmatch(self.tap).group("layer", "name")
        return layer, name, None if self.index is None else translate(index_axis(self.tap).one, index=self.index)

    def affects(self, tap: str) -> bool:
        """Return True if it changes a value: its own; for rotary angles, those of layers with a window too."""
        return tap == self.tap or (tap, self.tap) == ("local_rope.angles", "rope.angles")

    def check(self, config: ModelConfig, taps: Collection[str]):
        """Raise UserError if a model lacks the value, element or positions that it changes.

        Args:
            config: of the model.
            taps: names of the values it computes.
        """
        for tap in self.affected_taps(config):
            if tap not in taps:
                raise UserError(_("this model has no value {tap} that could be changed", tap=tap))
        furthest = self.positions.max_position if self.positions else 0
        if furthest >= config.context_length:
            message = _(
                "this model sees positions 0 to {last}, got {got}", last=config.context_length - 1, got=furthest
            )
            raise UserError(message)
        parts = index_axis(self.tap)
        last = parts.size(config) - 1
        if self.index is not None and not 0 <= self.index <= last:
            raise UserError(translate(parts.limits, tap=self.tap, last=last, index=self.index))


def _shortest(amount: float) -> str:
    """Return the shortest text that is parsed as the same number."""
    return str(int(amount)) if amount % 1 == 0 else repr(float(amount))
