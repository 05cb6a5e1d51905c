"""Base class of interventions: location, text and validation, hooks, and exact effect."""

import re
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
import torch
from torch import Tensor, nn

from explorer.errors import UserError
from explorer.translations import N_, _, translate
from model.config import ModelConfig
from model.transformer_lm import TransformerLM

RANGE = re.compile(r"([0-9]{1,9})(-([0-9]{1,9})?)?")
MAX_RANGES = 64


@dataclass(frozen=True)
class PositionSet:
    """A set of positions, for example "3-5.9": 3, 4, 5 and 9; "1-" is all from 1 on, including future ones.

    Attributes:
        ranges: first and last position of each range, sorted and disjoint; the last None if the range is open.
    """

    ranges: tuple[tuple[int, int | None], ...]

    @classmethod
    def parse(cls, positions: "PositionSet | str | int | Iterable[int] | None") -> "PositionSet | None":
        """Parse positions from text or numbers; None stands for all.

        Raises:
            UserError: they are invalid.
        """
        if positions is None or isinstance(positions, PositionSet):
            return positions
        if isinstance(positions, int):
            positions = [positions]
        text = positions if isinstance(positions, str) else ".".join(map(str, positions))
        matches = [RANGE.fullmatch(part) for part in text.split(".")]
        ranges = [range_bounds(match) for match in matches if match]
        if len(matches) > MAX_RANGES or None in matches or any(last is not None and last < i for i, last in ranges):
            raise UserError(_("positions are written like 3-5.9 or 1- after the @, got {got!r}", got=text[:80]))
        return cls(merge_ranges(ranges))

    def __contains__(self, position: int) -> bool:
        return any(first <= position and (last is None or position <= last) for first, last in self.ranges)

    def __str__(self) -> str:
        return ".".join(format_range(first, last, "-") for first, last in self.ranges)

    @property
    def max_position(self) -> int:
        """The largest position that is named."""
        first, last = self.ranges[-1]
        return first if last is None else last

    @property
    def is_open(self) -> bool:
        """True if it has all positions from some position on."""
        return self.ranges[-1][1] is None

    def describe(self) -> str:
        """Describe the positions, for example "at position 3" or "at positions 3–5, 9"."""
        if self.is_open and len(self.ranges) == 1:
            return _("from position {first} on", first=self.ranges[0][0])
        ranges_text = ", ".join(format_range(first, last, "–") for first, last in self.ranges)
        if self.ranges[0] == (self.max_position, self.max_position):
            return _("at position {position}", position=ranges_text)
        return _("at positions {positions}", positions=ranges_text)


def range_bounds(match: re.Match) -> tuple[int, int | None]:
    """Return the first and last position of a matched range; None for an open end."""
    first, dash, last = match.groups()
    if not dash:
        return int(first), int(first)
    return int(first), int(last) if last else None


def merge_ranges(ranges: list[tuple[int, int | None]]) -> tuple[tuple[int, int | None], ...]:
    """Merge overlapping and adjacent ranges."""
    merged: list[tuple[int, int | None]] = []
    for first, last in sorted(ranges, key=lambda bounds: bounds[0]):
        if merged and (merged[-1][1] is None or first <= merged[-1][1] + 1):
            start, end = merged[-1]
            merged[-1] = start, None if end is None or last is None else max(end, last)
        else:
            merged.append((first, last))
    return tuple(merged)


def format_range(first: int, last: int | None, dash: str) -> str:
    """Format a range of positions; `last` None is an open end."""
    if last is None:
        return f"{first}{dash}"
    return str(first) if first == last else f"{first}{dash}{last}"


@dataclass(frozen=True)
class IndexAxis:
    """The axis that the index of an intervention refers to.

    Attributes:
        size: config -> its length.
        one: template for one element, for example "head 1".
        limits: template of the message for an index out of range.
    """

    size: Callable[[ModelConfig], int]
    one: str
    limits: str


HEADS = IndexAxis(lambda config: config.num_heads, N_("head {index}"), N_("{tap} has heads 0 to {last}, got {index}"))
KV_HEADS = IndexAxis(
    lambda config: config.kv_heads, N_("kv head {index}"), N_("{tap} has kv heads 0 to {last}, got {index}")
)
NEURONS = IndexAxis(lambda config: config.d_ff, N_("neuron {index}"), N_("{tap} has neurons 0 to {last}, got {index}"))
PAIRS = IndexAxis(lambda config: config.d_head // 2, N_("pair {index}"), N_("{tap} has pairs 0 to {last}, got {index}"))
TOKENS = IndexAxis(
    lambda config: config.vocab_size, N_("token {index}"), N_("{tap} has tokens 0 to {last}, got {index}")
)
DIMENSIONS = IndexAxis(
    lambda config: config.d_model, N_("dimension {index}"), N_("{tap} has dimensions 0 to {last}, got {index}")
)
# last part of a tap's name -> what the parts of its value are, where they are not dimensions
AXES = {
    **dict.fromkeys(("q", "q_norm", "q_rot", "scores", "pattern", "z"), HEADS),
    **dict.fromkeys(("k", "k_norm", "k_rot", "v"), KV_HEADS),
    **dict.fromkeys(("gate_pre", "gate", "up", "hidden"), NEURONS),
    "angles": PAIRS,
    "logits": TOKENS,
}


def index_axis(tap: str) -> IndexAxis:
    """Return the axis that the index of an intervention at a tap refers to."""
    return AXES.get(tap.rpartition(".")[2], DIMENSIONS)


TAP = re.compile(r"(blocks\.\*\.)?[a-z][\w.]*[a-z]", re.ASCII)
Text = Callable[[tuple[int, ...]], str]  # token ids -> how they are written
LOCATION = re.compile(r"(?:blocks\.(?P<layer>\d+)\.)?(?P<name>.+)")


def join_token_ids(token_ids: tuple[int, ...]) -> str:
    """Join token ids by dots."""
    return ".".join(map(str, token_ids))


# The module to hook, and the hook: (module, inputs, output) -> another output, or None to leave it.
ModuleHook = tuple[nn.Module, Callable[[nn.Module, tuple[Tensor, ...], Tensor], Tensor | None]]


class ForwardPassState:
    """The state of the current forward pass, besides its values.

    Attributes:
        edits: all active interventions, in order.
        start: position at which the pass starts: the number of cached positions before it.
        ids: token ids of the pass.
        unit_vector: function from the spec of a direction to its unit vector (D,).
        scores: attention scores by the name of their pattern, stored while a hook needs them.
    """

    def __init__(self, interventions: Sequence["Intervention"], unit_vector: Callable[[Any], np.ndarray]):
        self.edits, self.unit_vector, self.start, self.ids, self.scores = interventions, unit_vector, 0, (), {}

    @contextmanager
    def tracking(self, lm: TransformerLM) -> Iterator[None]:
        """Record position and token ids of each pass that this thread runs while the block runs."""
        thread = threading.get_ident()

        # Without `kwargs` where the block of another thread ends while this one's pass begins: PyTorch then calls the
        # hook that it has found, and finds no more how.
        def on_pass_start(module, args, kwargs=None):
            if threading.get_ident() == thread:
                cache = args[1] if len(args) > 1 else kwargs.get("cache")
                self.start = cache.length if cache else 0
                self.ids = (args[0] if args else kwargs["token_ids"])[0].tolist()

        handle = lm.register_forward_pre_hook(on_pass_start, with_kwargs=True)
        try:
            yield
        finally:
            handle.remove()

    def position_mask(self, intervention: "Intervention", output: Tensor) -> Tensor:
        """Return the positions of the pass that an intervention changes, as (T, 1) booleans for values (…, T, N)."""
        positions = range(self.start, self.start + output.shape[-2])
        is_changed = [intervention.positions is None or position in intervention.positions for position in positions]
        return torch.tensor(is_changed, device=output.device)[:, None]

    def selection_mask(self, intervention: "Intervention", output: Tensor) -> Tensor:
        """Return the elements that an intervention changes, as booleans.

        They broadcast to values (B, H, T, N) or (B, T, N).
        """
        rows = self.position_mask(intervention, output)
        if intervention.index is None:
            return rows
        axis = 1 if output.ndim == 4 else -1
        is_selected = torch.arange(output.shape[axis], device=output.device) == intervention.index
        return rows & (is_selected[:, None, None] if axis == 1 else is_selected)


class TraceLike(Protocol):
    """The part of a trace that exact effects read."""

    def direction(self, spec: Any) -> np.ndarray:
        """Return the unit vector (D,) of a direction."""


def format_amount(amount: float) -> str:
    """Format an amount with at most ten digits and a true minus sign."""
    return f"{amount:.10g}".replace("-", "−")


@dataclass(frozen=True)
class Intervention:
    """A change to a captured value, and to everything that is computed from it.

    The hooks apply it in a pass of the model. Its exact effect (`recompute`, `apply_linear`) is in float64 and
    independent of them. Kinds that change how a value is computed have none: the value's own formula reads them from
    the trace.

    Attributes:
        operation: name of the kind in text.
        order: place among the kinds that act at one tap, whatever order they were given in: first where tokens stand
            (below 20), then what computes the value in another way (below 40), then what changes the value.
        min_amount, max_amount: bounds of the amount; both 0 if the kind has none.
        is_integer: whether the amount is a whole number.
        taps: the only taps that the kind applies to, always as a whole; None: all.
        values: pattern of the taps that the kind applies to, and a description of them; None: all.
        is_whole: whether it changes whole values, without an index.
        is_everywhere: whether it changes all positions.
        adds: whether the changed value has a term that is not linear in the original value.
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
    order: ClassVar[int]
    min_amount: ClassVar[float] = 0.0
    max_amount: ClassVar[float] = 0.0
    is_integer: ClassVar[bool] = False
    taps: ClassVar[tuple[str, ...] | None] = None
    values: ClassVar[tuple[re.Pattern, str] | None] = None
    is_whole: ClassVar[bool] = False
    is_everywhere: ClassVar[bool] = False
    adds: ClassVar[bool] = False
    argument_example: ClassVar[str] = ""

    tap: str
    amount: float = 0.0
    index: int | None = None
    positions: PositionSet | None = None
    by: str = ""

    def __post_init__(self):
        if not TAP.fullmatch(self.tap):
            message = _("a change is of a value with a name such as blocks.0.attn.z, got {got!r}", got=self.tap[:80])
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
        """Describe the operation and its positions, for example "head 1 of layer 2 ablated, at position 3".

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
        """Describe the operation, for example "head 1 of layer 2 ablated"."""
        raise NotImplementedError

    def target_labels(self) -> tuple[str | None, str, str | None]:
        """Return labels of the layer, the value in it, and the element that is changed; None if there is none."""
        layer, name = LOCATION.fullmatch(self.tap).group("layer", "name")
        return layer, name, None if self.index is None else translate(index_axis(self.tap).one, index=self.index)

    def target_text(self) -> str:
        """Return what is changed, for example "dimension 3 of attn.out of layer 2"."""
        layer, name, part = self.target_labels()
        name = name if part is None else _("{part} of {name}", part=part, name=name)
        return name if layer is None else _("{name} of layer {layer}", name=name, layer=layer)

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

    def hooks(self, lm: TransformerLM, pass_context: ForwardPassState) -> list[ModuleHook]:
        """Return the modules and hooks that apply it.

        Raises:
            UserError: the model does not allow it.
        """

        def change(module, inputs, output):
            return torch.where(pass_context.selection_mask(self, output), self.changed_value(output), output)

        return [(module, change) for name, module in lm.taps.items() if self.affects(name)]

    def changed_value(self, value: Tensor) -> Tensor | float:
        """Return the value as it is where it is changed, for `hooks`."""
        raise NotImplementedError

    def observers(self, lm: TransformerLM, pass_context: ForwardPassState) -> list[ModuleHook]:
        """Return hooks that only read values, and run after all changes."""
        return []

    def recompute(self, trace: TraceLike, value: np.ndarray, sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Apply it to a whole captured value, (H, T, N) or (T, N), and to its `sizes`.

        `sizes` are the sizes of the terms that each number is made of (`explorer.explain.derivation.Calculation`).
        """
        return value, sizes

    def symbol(self) -> str:
        """Return the exact effect in symbols, such as "× 2"; "" if the value's own formula contains it."""
        return ""

    def apply_linear(self, trace: TraceLike, x: np.ndarray, position: int | np.ndarray | None) -> np.ndarray:
        """Apply the linear part to vectors (…, N), without what the intervention `adds`.

        The matrix is symmetric, so that the same product maps a direction read after the intervention to the
        direction before it.

        Args:
            position: position of the vectors, or (T,) positions for x (…, T, N). May be None if the intervention
                acts at all positions.
        """
        return x

    def scale_selected(self, x: np.ndarray, position: int | np.ndarray | None, factor: float) -> np.ndarray:
        """Multiply the elements that it changes in vectors (…, N) by a factor."""
        factors = np.ones(x.shape[-1])
        factors[slice(None) if self.index is None else self.index] = factor
        return x * np.where(self.is_active(position)[..., None], factors, 1.0).astype(x.dtype)

    def is_active(self, position: int | np.ndarray | None) -> np.ndarray:
        """Return whether it acts at a position, () booleans; (T,) for several.

        The position may be None if the intervention acts at all positions.
        """
        if self.positions is None:
            return np.ones(np.shape(position), dtype=bool)
        if position is None:
            raise ValueError(f"{self} holds at some positions only: say at which the vectors are")
        return np.vectorize(self.positions.__contains__, otypes=[bool])(position)

    def element_mask(self, shape: tuple[int, ...]) -> np.ndarray:
        """Return the elements that it changes, as booleans of the value's shape (H, T, N) or (T, N)."""
        rows = self.is_active(np.arange(shape[-2]))  # (T,)
        mask = np.zeros(shape, dtype=bool)
        if len(shape) == 3:
            mask[slice(None) if self.index is None else self.index] = rows[:, None]
        elif self.index is None:
            mask[:] = rows[:, None]
        else:
            mask[:, self.index] = rows
        return mask


class Replacement(Intervention):
    """Base of interventions that leave nothing of the original value."""

    adds: ClassVar[bool] = True

    def apply_linear(self, trace: TraceLike, x: np.ndarray, position: int | np.ndarray | None) -> np.ndarray:
        return self.scale_selected(x, position, 0.0)


def _shortest(amount: float) -> str:
    """Return the shortest text that is parsed as the same number."""
    return str(int(amount)) if amount % 1 == 0 else repr(float(amount))
