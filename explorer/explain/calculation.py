"""Calculations: a formula, its inputs and its result."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from explorer.tracing.trace import Trace
from explorer.translations import _, ngettext

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
