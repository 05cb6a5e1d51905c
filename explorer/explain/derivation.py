"""Derivations of displayed numbers: formula, inputs, recomputation, line of code, and tolerance for rounding error.

A number is displayed at a point of a figure, which the user clicks.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

import numpy as np

from explorer.errors import PointNotFoundError
from explorer.explain.notation import format_number, format_six_digits
from explorer.explain.source_code import SourceLine
from explorer.tracing.trace import Trace
from explorer.translations import N_, _, ngettext, translate

Index = tuple[int | slice, ...]  # an axis each; axes left out are taken whole
ALL = slice(None)


@dataclass(frozen=True)
class Input:
    """An input of a calculation.

    Attributes:
        name: tap of a captured value, or name of a weight.
        index: the part of it that is used.
        shape: shape of that part.
    """

    name: str
    index: Index
    shape: tuple[int, ...]

    def __str__(self) -> str:
        """Format the input, as in "blocks.2.attn.scores[1, 7, :8], 8 numbers"."""
        location = f"{self.name}{format_index(self.index)}"
        if len(self.shape) > 1:
            return _("{part}, {shape} numbers", part=location, shape=" × ".join(map(str, self.shape)))
        count = self.shape[0] if self.shape else 1
        return ngettext("{part}, {count} number", "{part}, {count} numbers", count, part=location)


def format_index(index: Sequence[int | slice]) -> str:
    """Format an index in Python's notation, without trailing full slices; "" for a full index."""

    def format_slice(item: int | slice) -> str:
        if not isinstance(item, slice):
            return str(item)
        return ":".join("" if end is None else str(end) for end in (item.start, item.stop))

    while index and index[-1] == ALL:
        index = index[:-1]
    return f"[{', '.join(map(format_slice, index))}]" if index else ""


@dataclass(frozen=True)
class Calculation:
    """A formula, its inputs and its result in float64, for one number or for all numbers of a value.

    Attributes:
        symbols: the formula in symbols.
        numbers: formats the formula with its numbers and the result; for a single number only.
        value: the result.
        inputs: captured values and weights used.
        sizes: sum of the sizes of the terms of each number, which rounding error is relative to; ≥ 0. NaN
            if the result is not checked.
    """

    symbols: str
    numbers: Callable[[], str]
    value: np.ndarray | float
    inputs: tuple[Input, ...]
    sizes: np.ndarray | float = np.nan


def unique_inputs(inputs: Iterable[Input]) -> tuple[Input, ...]:
    """Return the inputs without duplicates."""
    return tuple({str(read): read for read in inputs}.values())


def read_input(trace: Trace, name: str, *index: int | slice | np.ndarray) -> tuple[np.ndarray, Input]:
    """Return part of a captured value or a weight as a float64 copy, and its description as an input."""
    stored = (
        trace.weights[name][index] if name not in trace and name in trace.weights else trace.get_slice(name, *index)
    )
    array = np.array(stored, dtype=np.float64)
    return array, Input(name, index, array.shape)


COMPARISON_TEXTS = {
    "captured": N_("captured {value}, recomputed {recomputed}, off by {difference}"),
    "drawn": N_("drawn {value}, recomputed {recomputed}, off by {difference}"),
}


@dataclass(frozen=True)
class Derivation:
    """A number on the page with its recomputation, its location in the run and the source line that computes it.

    Attributes:
        name: tap and index of a captured value, or a description of the number.
        location: text that says which token, head or layer the number belongs to.
        value: the number as captured, or as displayed in a figure.
        working: the recomputation from the number's inputs.
        source: the line that computes it: in the model if it was captured, else in the analysis.
        kind: whether it was captured or is displayed.
        note: what else is to be known of the number, in lines of text.
        words: what the number is, in a sentence; "" if `name` says it.
    """

    name: str
    location: str
    value: float
    working: Calculation
    source: SourceLine
    kind: Literal["captured", "drawn"] = "drawn"
    note: str = ""
    words: str = ""

    @property
    def recomputed_value(self) -> float:
        """The recomputed number."""
        return float(self.working.value)

    @property
    def difference(self) -> float:
        return abs(self.value - self.recomputed_value)

    def lines(self, depth: str = "code") -> list[str]:
        """Return the derivation as lines of plain text.

        Args:
            depth: as in `Selection`: names of values are for those who want formulas, lines of code for those who
                want code.
        """
        numbers = {"value": self.value, "recomputed": self.recomputed_value}
        texts = {name: format_six_digits(number) for name, number in numbers.items()}
        name = f"{self.name} = {texts['value']}"
        return [
            self.words or name,
            self.location,
            self.working.symbols,
            self.working.numbers(),
            *self.note.splitlines(),
            translate(COMPARISON_TEXTS[self.kind], **texts, difference=format_number(self.difference)),
            *([name] if self.words and depth != "numbers" else []),
            *(_("from {numbers}", numbers=read) for read in self.working.inputs if depth != "numbers"),
            *([str(self.source)] if depth == "code" else []),
        ]


# Type of a model's numbers -> how many half units in the last place, relative to the terms that a value is made of
# (`Working.sizes`), still count as rounding. Measured over all kinds of models of the tests, untrained and trained
# checkpoints, with and without edits, of 1, 30 and 256 tokens, and one of GPT-2 small's size, of 512: rounding is at
# most 20 of them in float32 (what a head fetches; a linear map 10) and 2.4 in float16 and bfloat16, which add up in
# float32 and round once. A value that is 1 % too large is off by at least 12,400 in float32, the least of all a score
# of two vectors almost at right angles; in float16 by at least 1.5, in bfloat16 by 0.2, so that there 1 % can be
# rounding: 5 % is none in any figure's mark.
UNITS = {"float32": 512, "float16": 4, "bfloat16": 4}
# Half a unit in the last place of 1; and the smallest normal number, below which rounding is no longer relative.
HALF_UNIT = {"float32": 2.0**-24, "float16": 2.0**-11, "bfloat16": 2.0**-8}
MIN_NORMAL = {"float32": 2.0**-126, "float16": 2.0**-14, "bfloat16": 2.0**-126}
# The same of whole runs, whose rounding adds up: how far numbers of size 1 may lie apart in two of them. Measured on
# runs that differ in nothing else, rotary positions shifted by 1 to 4,096: in float32 at most 5 half units for each
# radian of the largest angle, which is rounded too; in float16 and bfloat16 at most 13, of 1 or of a surprisal's bits.
RUN_UNITS = {"float32": 512, "float16": 32, "bfloat16": 32}
RADIAN_UNITS = 16  # of float32, in which angles are, whatever the type of the other numbers


def tolerance(dtype: str) -> float:
    """Return the relative tolerance of a value, as a fraction of the size of its terms."""
    return UNITS[dtype] * HALF_UNIT[dtype]


def rounding_threshold(dtype: str, angle: float = 0.0) -> float:
    """Return the smallest difference of two runs that rounding does not explain, for numbers of size 1.

    Args:
        angle: the largest rotation angle, if the runs rotate by different ones.
    """
    return max(RUN_UNITS[dtype] * HALF_UNIT[dtype], RADIAN_UNITS * HALF_UNIT["float32"] * angle)


@dataclass(frozen=True)
class RecomputationCheck:
    """Result of comparing values with their recomputation.

    Attributes:
        error: the largest difference; NaN if one is NaN.
        times: the largest ratio of a difference to its tolerance; NaN if undefined.
    """

    error: float
    times: float

    @classmethod
    def from_arrays(
        cls, dtype: str, values: np.ndarray, recomputed: np.ndarray, sizes: np.ndarray | float
    ) -> "RecomputationCheck":
        """Compare values with their recomputation; `sizes` are the sizes of the terms of each value."""
        with np.errstate(all="ignore"):  # infinite and missing numbers have a say, below
            errors = np.abs(values - recomputed)
            allowed = tolerance(dtype) * np.abs(sizes) + MIN_NORMAL[dtype]
            times = np.where(np.isfinite(allowed), errors / allowed, np.nan)
        return cls(float(np.max(errors)), float(np.max(times)))  # unlike Python's, this max keeps a NaN

    @classmethod
    def worst(cls, checks: Sequence["RecomputationCheck"]) -> "RecomputationCheck":
        """Combine the checks of parts of a value into the check of the whole."""
        return cls(*(float(np.max([getattr(check, field) for check in checks])) for field in ("error", "times")))

    @property
    def is_within_tolerance(self) -> bool:
        """True if rounding explains all differences; False for NaN."""
        return self.times <= 1


def largest_error(checks: Iterable[RecomputationCheck]) -> float:
    """Return the largest error of several checks; NaN if one is NaN."""
    return float(np.max([check.error for check in checks]))


@dataclass(frozen=True)
class ClickedPoint:
    """A clicked point of a figure.

    Attributes:
        x, y: its coordinates; on a categorical axis, indices from 0.
        layer, head: of the subplot, if the figure has several.
        curve: index of the trace of the figure (line, bars or heatmap).
        item: index within the trace, from 0; None for a heatmap.
    """

    x: float
    y: float
    layer: int | None = None
    head: int | None = None
    curve: int | None = None
    item: int | None = None

    def coordinate_or_none(self, axis: str) -> int | None:
        """Return a coordinate as an index from 0, or None if it is missing.

        Raises PointNotFoundError if it is no index.
        """
        value = getattr(self, axis)
        if value is None:
            return None
        if value < 0 or value % 1:
            raise PointNotFoundError(_("{axis} of the point is no place on an axis: {value}", axis=axis, value=value))
        return int(value)

    def coordinate(self, axis: str) -> int:
        """Return a coordinate as an index from 0; PointNotFoundError if it is missing or no index."""
        index = self.coordinate_or_none(axis)
        if index is None:
            raise PointNotFoundError(_("the point has no {axis}", axis=axis))
        return index

    @property
    def column(self) -> int:
        return self.coordinate_or_none("x")

    @property
    def row(self) -> int:
        return self.coordinate_or_none("y")


def get_element(values: np.ndarray, *index: int) -> float:
    """Return values[index]; PointNotFoundError if there is no such element. Negative indices are out of range."""
    check_element(values.shape, *index)
    return float(values[index])


def check_element(shape: tuple[int, ...], *index: int):
    """Raise PointNotFoundError if a value of that shape has no such element."""
    if len(index) != len(shape) or not all(0 <= i < size for i, size in zip(index, shape, strict=False)):
        raise PointNotFoundError(
            _("there is no element {index} in a value of shape {shape}", index=list(index), shape=shape)
        )


Item = TypeVar("Item")


def get_item(items: Sequence[Item], index: int) -> Item:
    """Return items[index]; PointNotFoundError if there is no such item."""
    if not 0 <= index < len(items):
        raise PointNotFoundError(_("there is no place {place} among {count}", place=index, count=len(items)))
    return items[index]
