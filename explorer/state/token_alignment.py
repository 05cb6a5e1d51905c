"""Alignment of two runs' tokens."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np

from explorer.errors import UserError
from explorer.translations import _

SEPARATOR, PAIR, MAX_PINS = "~", re.compile(r"([0-9]{1,4})\.([0-9]{1,4})"), 64
Pins = tuple[tuple[int, int], ...]  # pairs of positions that the user aligned
Partners = tuple[int | None, ...]  # of each position of the first run the second's; None for a gap


@dataclass(frozen=True)
class Alignment:
    """The alignment of two token sequences.

    Attributes:
        kind: "same" if all tokens are equal; "length" if the lengths are equal, and each token is aligned with the
            one at its position; "edited" if they are aligned by a shortest edit script; "pinned" if the user
            aligned tokens; "none" if no token is aligned.
        partners: (T,) the aligned position of each token of the first run; None for a gap.
        length: tokens of the second run.
    """

    kind: Literal["same", "length", "edited", "pinned", "none"]
    partners: Partners
    length: int

    @property
    def inverse(self) -> Partners:
        """The aligned position of each token of the second run; None for a gap."""
        inverse: list[int | None] = [None] * self.length
        for position, partner in enumerate(self.partners):
            if partner is not None:
                inverse[partner] = position
        return tuple(inverse)

    def nearest_aligned(self, position: int) -> int:
        """Return the partner of a position of the first run, or of the nearest before it with one; 0 if none has."""
        return next((partner for partner in reversed(self.partners[: position + 1]) if partner is not None), 0)

    @property
    def is_identity(self) -> bool:
        return self.partners == tuple(range(self.length))


@lru_cache(64)
def align_tokens(first: tuple[str, ...], second: tuple[str, ...], pins: Pins = ()) -> Alignment:
    """Align the tokens of two runs by their texts.

    Sequences of equal length are aligned position by position, others by a script with the fewest insertions,
    deletions and replacements (Levenshtein).

    Args:
        pins: pairs of positions that are aligned in any case, in order; those beyond an end are left out.
    """
    pins = tuple((a, b) for a, b in pins if a < len(first) and b < len(second))
    partners: list[int | None] = []
    for (a, b), (end_a, end_b) in zip(((-1, -1), *pins), (*pins, (len(first), len(second))), strict=True):
        segment = _align_segment(first[a + 1 : end_a], second[b + 1 : end_b])
        partners += [None if index is None else index + b + 1 for index in segment]
        if end_a < len(first):
            partners.append(end_b)
    if pins:
        kind = "pinned"
    elif len(first) == len(second):
        kind = "same" if first == second else "length"
    else:
        agree = any(p is not None and first[i] == second[p] for i, p in enumerate(partners))
        kind = "edited" if agree else "none"
    return Alignment(kind, tuple(partners) if kind != "none" else (None,) * len(first), len(second))


def _align_segment(first: Sequence[str], second: Sequence[str]) -> list[int | None]:
    if len(first) == len(second):
        return list(range(len(first)))
    return align_by_shortest_edit(first, second)


def align_by_shortest_edit(first: Sequence[str], second: Sequence[str]) -> list[int | None]:
    """Return each first token's partner in the second sequence by a shortest edit script; None if it is deleted.

    Among the shortest scripts, this is the one with the most equal tokens at the end.
    """
    costs = _edit_distances(first, second)
    partners: list[int | None] = [None] * len(first)
    i, j = len(first), len(second)
    while i and j:
        step = first[i - 1] != second[j - 1]
        if costs[i, j] == costs[i - 1, j - 1] + step:
            i, j = i - 1, j - 1
            partners[i] = j
        elif costs[i, j] == costs[i - 1, j] + 1:
            i -= 1
        else:
            j -= 1
    return partners


def _edit_distances(first: Sequence[str], second: Sequence[str]) -> np.ndarray:
    """Return the edit distances between all prefixes of two sequences, (n + 1, m + 1) (Wagner & Fischer 1974)."""
    ids = {token: number for number, token in enumerate({*first, *second})}
    columns, steps = np.array([ids[token] for token in second], dtype=int), np.arange(len(second) + 1)
    costs = np.empty((len(first) + 1, len(second) + 1), dtype=int)
    costs[0] = steps
    for i, token in enumerate(first):
        above = costs[i] + 1  # deleted
        above[1:] = np.minimum(above[1:], costs[i, :-1] + (columns != ids[token]))  # kept or replaced
        costs[i + 1] = np.minimum.accumulate(above - steps) + steps  # and any number inserted after it
    return costs


def parse_pins(text: str) -> Pins:
    """Parse pairs of aligned positions, for example "3.4~7.9".

    Raises:
        UserError: the text is invalid, or pairs cross each other.
    """
    matches = [PAIR.fullmatch(pair) for pair in text.split(SEPARATOR)] if text else []
    if None in matches or len(matches) > MAX_PINS:
        message = _("pairs of tokens are at most {most}, as in 3.4~7.9, got {got!r:.80}")
        raise UserError(message.format(most=MAX_PINS, got=text))
    pins = tuple(sorted((int(match[1]), int(match[2])) for match in matches))
    if any(a >= c or b >= d for (a, b), (c, d) in zip(pins, pins[1:], strict=False)):
        raise UserError(_("aligned pairs cannot cross: remove one first"))
    return pins


def format_pins(pins: Pins) -> str:
    """Format pinned pairs of positions as the URL has them."""
    return SEPARATOR.join(f"{a}.{b}" for a, b in pins)
