"""How one number comes about: the formula, the same with its numbers, and where these come from."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from explorer.explain.notation import number
from explorer.explain.source import Source
from explorer.tracing.trace import Trace

MOST_TERMS = 3  # of a sum that are written out


@dataclass(frozen=True)
class Input:
    """Numbers that another is worked out from.

    Attributes:
        name: of a captured value or a weight.
        index: the part of it that is taken, an axis each; axes left out are taken whole.
        shape: of that part.
    """

    name: str
    index: tuple[int | slice, ...]
    shape: tuple[int, ...]

    def __str__(self) -> str:
        """As in "blocks.2.attn.scores[1, 7, :8], 8 numbers"."""
        size = f"{' × '.join(map(str, self.shape))} number{'s' * (self.shape != (1,))}" if self.shape else "1 number"
        return f"{self.name}{subscript(self.index)}, {size}"


def subscript(index: Sequence[int | slice]) -> str:
    """An index as Python writes it, "" where all is taken."""

    def written(part: int | slice) -> str:
        if not isinstance(part, slice):
            return str(part)
        return ":".join("" if end is None else str(end) for end in (part.start, part.stop))

    return f"[{', '.join(map(written, index))}]" if index else ""


@dataclass(frozen=True)
class Working:
    """One number, worked out.

    Attributes:
        symbols: the formula.
        numbers: the formula with the numbers in it, result included.
        value: the result.
        inputs: what went into it.
    """

    symbols: str
    numbers: str
    value: float
    inputs: tuple[Input, ...]


class Formula(Protocol):
    """How a captured value comes from earlier ones.

    Attributes:
        names: of the captured values and weights it is worked out from.
        source: the line of the model that computes it.
    """

    source: Source

    @property
    def names(self) -> tuple[str, ...]: ...

    def array(self, trace: Trace) -> np.ndarray:
        """The whole value, in float64."""

    def sizes(self, trace: Trace) -> np.ndarray:
        """How large the terms are that each element is made of, together: what rounding takes a share of; ≥ 0."""

    def working(self, trace: Trace, index: tuple[int, ...]) -> Working:
        """One element of it."""


def values(trace: Trace, name: str) -> np.ndarray:
    """A captured value or a weight in float64."""
    return (trace.weights[name] if name in trace.weights else trace[name]).astype(np.float64)


def take(trace: Trace, name: str, *index: int | slice) -> tuple[np.ndarray, Input]:
    """Part of a captured value or a weight in float64, and where it is from."""
    whole = trace.weights[name] if name in trace.weights else trace[name]
    part = np.asarray(whole[index], dtype=np.float64)
    return part, Input(name, index, part.shape)


def factor(value: float) -> str:
    """A number as it stands in a product."""
    return f"({number(value)})" if value < 0 else number(value)


def products(a: np.ndarray, b: np.ndarray) -> str:
    """a·b of two vectors as the sum of its terms, the largest first, in brackets."""
    return summed(a * b, [f"{factor(x)}·{factor(y)}" for x, y in zip(a, b, strict=True)])


def summed(terms: np.ndarray, texts: Sequence[str] | None = None) -> str:
    """A sum of terms, each written as its text or else as a number, the largest first, in brackets."""
    order = np.argsort(-np.abs(terms), kind="stable")
    shown = [texts[i] if texts else factor(terms[i]) for i in order[:MOST_TERMS]]
    if rest := len(terms) - len(shown):
        shown.append(f"{rest} more term{'s' * (rest > 1)}")
    return f"({' + '.join(shown)})"
