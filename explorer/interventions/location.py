"""The location of an intervention: sets of positions, and axes of values that an index refers to."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from explorer.errors import UserError
from explorer.translations import N_, _
from model.config import ModelConfig

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
