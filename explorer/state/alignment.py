"""Which token of one run stands for which of another."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np

from explorer.language import _
from explorer.state.errors import UserError

BETWEEN, PAIR, MOST_PINS = "~", re.compile(r"([0-9]{1,4})\.([0-9]{1,4})"), 64
Pins = tuple[tuple[int, int], ...]  # pairs of positions that somebody put beside each other
Partners = tuple[int | None, ...]  # of each position of the first run the second's; None for a gap


@dataclass(frozen=True)
class Alignment:
    """Two rows of tokens beside each other.

    Attributes:
        kind: "same" where all tokens are, "length" where there are as many and each stands beside the one at its
            position, "edited" where they are aligned by a shortest edit script, "pinned" where somebody put tokens
            beside each other, and "none" where no token of the one is in its place in the other.
        partners: (T,) of each token of the first run.
        length: tokens of the second run.
    """

    kind: Literal["same", "length", "edited", "pinned", "none"]
    partners: Partners
    length: int

    @property
    def back(self) -> Partners:
        """The same of each token of the second run."""
        found: list[int | None] = [None] * self.length
        for position, partner in enumerate(self.partners):
            if partner is not None:
                found[partner] = position
        return tuple(found)

    def nearest(self, position: int) -> int:
        """The partner of a position of the first run, or of the nearest before it that has one; 0 where none has."""
        return next((partner for partner in reversed(self.partners[: position + 1]) if partner is not None), 0)

    @property
    def is_identity(self) -> bool:
        return self.partners == tuple(range(self.length))


@lru_cache(64)
def aligned(first: tuple[str, ...], second: tuple[str, ...], pins: Pins = ()) -> Alignment:
    """Tokens of two runs, by their texts, beside each other: where they are as many, position by position; or else by
    a script of as few insertions, deletions and replacements as can be (Levenshtein).

    Args:
        pins: pairs that stand beside each other in any case, in order; those beyond an end are left out.
    """
    pins = tuple((a, b) for a, b in pins if a < len(first) and b < len(second))
    partners: list[int | None] = []
    for (a, b), (end_a, end_b) in zip(((-1, -1), *pins), (*pins, (len(first), len(second))), strict=True):
        part = _between(first[a + 1 : end_a], second[b + 1 : end_b])
        partners += [None if place is None else place + b + 1 for place in part]
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


def _between(first: Sequence[str], second: Sequence[str]) -> list[int | None]:
    if len(first) == len(second):
        return list(range(len(first)))
    return shortest_edit(first, second)


def shortest_edit(first: Sequence[str], second: Sequence[str]) -> list[int | None]:
    """Of each token of the first row its partner in the second, kept or replaced; None where it is deleted.

    Of scripts that are as short the one with the most tokens kept at the end.
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
    """(n + 1, m + 1) edits from the first i tokens of one row to the first j of the other (Wagner & Fischer 1974)."""
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
    """Pairs of positions from a text like "3.4~7.9", in order; UserError where they are none or cross each other."""
    if not isinstance(text, str):
        raise UserError(_("pairs of tokens are a text such as 3.4~7.9, got {got!r:.80}", got=text))
    found = [PAIR.fullmatch(pair) for pair in text.split(BETWEEN)] if text else []
    if None in found or len(found) > MOST_PINS:
        told = _("pairs of tokens are at most {most}, as in 3.4~7.9, got {got!r:.80}")
        raise UserError(told.format(most=MOST_PINS, got=text))
    pins = tuple(sorted((int(match[1]), int(match[2])) for match in found))
    if any(a >= c or b >= d for (a, b), (c, d) in zip(pins, pins[1:], strict=False)):
        raise UserError(_("pairs of tokens cannot cross each other: take one back first"))
    return pins


def written(pins: Pins) -> str:
    return BETWEEN.join(f"{a}.{b}" for a, b in pins)
