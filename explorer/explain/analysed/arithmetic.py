"""Workings that many numbers share: lengths, cosines, products, means."""

import math
from collections.abc import Sequence

import numpy as np

from explorer.explain.notation import factor, number, products, summed
from explorer.explain.working import Input, Working
from explorer.language import _

Read = tuple[np.ndarray, Input]  # numbers, and where they are from


def length(
    x: np.ndarray, inputs: tuple[Input, ...], symbols: str = "‖x‖₂ = √Σx²", with_square: bool = False
) -> Working:
    """‖x‖₂ of all numbers of an array; `with_square` writes its square, too."""
    squares = (x * x).ravel()
    total = math.fsum(squares)
    value, root = math.sqrt(total), f"√{number(total)} = " * with_square
    return Working(symbols, lambda: f"‖x‖₂ = √{summed(squares)} = {root}{number(value)}", value, inputs)


def cosine(a: Read, b: Read, names: tuple[str, str] = ("a", "b")) -> Working:
    """Of the angle between two vectors; 0 where one has no length."""
    (x, from_x), (y, from_y) = a, b
    lengths = [math.sqrt(math.fsum(v * v)) for v in (x, y)]
    scale = lengths[0] * lengths[1]
    value = math.fsum(x * y) / scale if scale else 0.0
    return Working(
        _("cosine = {a}·{b} / (‖{a}‖ ‖{b}‖)", a=names[0], b=names[1]),
        lambda: _(
            "cosine = {product} / ({lengths}) = {value}",
            product=products(x, y),
            lengths=" · ".join(map(number, lengths)),
            value=number(value),
        ),
        value,
        (from_x, from_y),
    )


def product(
    symbols: str, a: np.ndarray, b: np.ndarray, inputs: tuple[Input, ...], plus: float | None = None
) -> Working:
    """a·b, and a number that is added to it."""
    value, added = float(a @ b) + (plus or 0.0), "" if plus is None else f" + {factor(plus)}"
    return Working(symbols, lambda: f"{products(a, b)}{added} = {number(value)}", value, inputs)


def mean(symbols: str, terms: Sequence[float] | np.ndarray, inputs: tuple[Input, ...], name: str = "") -> Working:
    """Of some numbers; `name` is what the result is called."""
    terms = np.asarray(terms)
    value = math.fsum(terms) / len(terms)
    result = f"{name} = " if name else ""
    return Working(symbols, lambda: f"{result}{summed(terms)} / {len(terms)} = {number(value)}", value, inputs)


def largest(symbols: str, terms: np.ndarray, whose: Sequence[str], inputs: tuple[Input, ...]) -> Working:
    """Of some numbers; `whose` says what each is of."""
    value = max(terms.tolist())
    return Working(
        symbols,
        lambda: _("that of {whose}: {value}", whose=whose[int(terms.argmax())], value=number(value)),
        value,
        inputs,
    )


def quotient(symbols: str, above: float, below: float, inputs: tuple[Input, ...]) -> Working:
    """above / below; 0 where there is nothing below."""
    value = above / below if below else 0.0
    return Working(symbols, lambda: f"{number(above)} / {number(below)} = {number(value)}", value, inputs)
