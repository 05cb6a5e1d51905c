"""At which tokens something is changed."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from explorer.language import _
from explorer.state.errors import UserError

RANGE = re.compile(r"([0-9]{1,9})(-([0-9]{1,9})?)?")
MOST_RANGES = 64


@dataclass(frozen=True)
class Positions:
    """Some of a text's positions, as in "3-5.9": 3, 4, 5 and 9; "1-" is all from 1 on, to come as well.

    Attributes:
        ranges: first and last of each stretch, in order and apart from one another; the last None where it is open.
    """

    ranges: tuple[tuple[int, int | None], ...]

    @classmethod
    def of(cls, positions: "Positions | str | int | Iterable[int] | None") -> "Positions | None":
        """From text or numbers; None stands for all. UserError where they are no positions."""
        if positions is None or isinstance(positions, Positions):
            return positions
        if isinstance(positions, int):
            positions = [positions]
        text = positions if isinstance(positions, str) else ".".join(map(str, positions))
        found = [RANGE.fullmatch(part) for part in text.split(".")]
        stretches = [bounds(match) for match in found if match]
        if len(found) > MOST_RANGES or None in found or any(last is not None and last < i for i, last in stretches):
            raise UserError(_("positions are written like 3-5.9 or 1- after the @, got {got!r}", got=text[:80]))
        return cls(joined(stretches))

    def __contains__(self, position: int) -> bool:
        return any(first <= position and (last is None or position <= last) for first, last in self.ranges)

    def __str__(self) -> str:
        return ".".join(written(first, last, "-") for first, last in self.ranges)

    @property
    def furthest(self) -> int:
        """The largest that is named."""
        first, last = self.ranges[-1]
        return first if last is None else last

    @property
    def is_open(self) -> bool:
        """Whether all from some position on are among them."""
        return self.ranges[-1][1] is None

    def words(self) -> str:
        """As in "at position 3" or "at positions 3–5, 9"."""
        if self.is_open and len(self.ranges) == 1:
            return _("from position {first} on", first=self.ranges[0][0])
        said = ", ".join(written(first, last, "–") for first, last in self.ranges)
        if self.ranges[0] == (self.furthest, self.furthest):
            return _("at position {position}", position=said)
        return _("at positions {positions}", positions=said)


def bounds(match: re.Match) -> tuple[int, int | None]:
    first, dash, last = match.groups()
    if not dash:
        return int(first), int(first)
    return int(first), int(last) if last else None


def joined(stretches: list[tuple[int, int | None]]) -> tuple[tuple[int, int | None], ...]:
    """The same positions, each once."""
    apart: list[tuple[int, int | None]] = []
    for first, last in sorted(stretches, key=lambda stretch: stretch[0]):
        if apart and (apart[-1][1] is None or first <= apart[-1][1] + 1):
            start, end = apart[-1]
            apart[-1] = start, None if end is None or last is None else max(end, last)
        else:
            apart.append((first, last))
    return tuple(apart)


def written(first: int, last: int | None, dash: str) -> str:
    if last is None:
        return f"{first}{dash}"
    return str(first) if first == last else f"{first}{dash}{last}"
