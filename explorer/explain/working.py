"""A formula, the numbers that go into it, and what it gives."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from explorer.language import _, ngettext
from explorer.tracing.trace import Trace

Index = tuple[int | slice, ...]  # an axis each; axes left out are taken whole
ALL = slice(None)


@dataclass(frozen=True)
class Input:
    """Numbers that others are worked out from.

    Attributes:
        name: of a captured value or a weight.
        index: the part of it that is taken.
        shape: of that part.
    """

    name: str
    index: Index
    shape: tuple[int, ...]

    def __str__(self) -> str:
        """As in "blocks.2.attn.scores[1, 7, :8], 8 numbers"."""
        part = f"{self.name}{subscript(self.index)}"
        if len(self.shape) > 1:
            return _("{part}, {shape} numbers", part=part, shape=" × ".join(map(str, self.shape)))
        count = self.shape[0] if self.shape else 1
        return ngettext("{part}, {count} number", "{part}, {count} numbers", count, part=part)


def subscript(index: Sequence[int | slice]) -> str:
    """An index as Python writes it, without what is taken whole at its end; "" where all is."""

    def written(part: int | slice) -> str:
        if not isinstance(part, slice):
            return str(part)
        return ":".join("" if end is None else str(end) for end in (part.start, part.stop))

    while index and index[-1] == ALL:
        index = index[:-1]
    return f"[{', '.join(map(written, index))}]" if index else ""


@dataclass(frozen=True)
class Working:
    """A number worked out in float64, or all numbers of a value at once by the same formula.

    Attributes:
        symbols: the formula.
        numbers: writes the formula with the numbers in it, result included; of one number alone.
        value: the result.
        inputs: what went into it.
        sizes: how large the terms are that each number is made of, together: what rounding takes a share of; ≥ 0. NaN
            where nothing is held against it.
    """

    symbols: str
    numbers: Callable[[], str]
    value: np.ndarray | float
    inputs: tuple[Input, ...]
    sizes: np.ndarray | float = np.nan


def each_once(inputs: Iterable[Input]) -> tuple[Input, ...]:
    return tuple({str(read): read for read in inputs}.values())


def take(trace: Trace, name: str, *index: int | slice | np.ndarray) -> tuple[np.ndarray, Input]:
    """Part of a captured value or a weight in float64, a copy, and where it is from."""
    found = trace.weights[name][index] if name not in trace and name in trace.weights else trace.part(name, *index)
    part = np.array(found, dtype=np.float64)
    return part, Input(name, index, part.shape)
