"""Derivations of numbers on the page: a formula, its inputs, a recomputation and its line of code."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

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
