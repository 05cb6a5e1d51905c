"""Calculations used by many derivations: norms, cosines, means, and measures of the next-token distribution."""

import math
from collections.abc import Sequence

import numpy as np

from explorer.explain.derivation import Calculation, Input
from explorer.explain.notation import format_dot_product, format_factor, format_six_digits, format_sum
from explorer.translations import _

Read = tuple[np.ndarray, Input]  # numbers, and where they are from


def norm(
    x: np.ndarray, inputs: tuple[Input, ...], symbols: str = "‖x‖₂ = √Σx²", with_square: bool = False
) -> Calculation:
    """Calculate ‖x‖₂ of all numbers of an array; `with_square` also shows its square."""
    squares = (x * x).ravel()
    total = math.fsum(squares)
    value, root = math.sqrt(total), f"√{format_six_digits(total)} = " * with_square
    return Calculation(
        symbols, lambda: f"‖x‖₂ = √{format_sum(squares)} = {root}{format_six_digits(value)}", value, inputs
    )


def cosine(a: Read, b: Read, names: tuple[str, str] = ("a", "b")) -> Calculation:
    """Calculate the cosine similarity of two vectors; 0 if one is zero."""
    (x, from_x), (y, from_y) = a, b
    norms = [math.sqrt(math.fsum(v * v)) for v in (x, y)]
    scale = norms[0] * norms[1]
    value = math.fsum(x * y) / scale if scale else 0.0
    return Calculation(
        _("cosine = {a}·{b} / (‖{a}‖ ‖{b}‖)", a=names[0], b=names[1]),
        lambda: _(
            "cosine = {product} / ({lengths}) = {value}",
            product=format_dot_product(x, y),
            lengths=" · ".join(map(format_six_digits, norms)),
            value=format_six_digits(value),
        ),
        value,
        (from_x, from_y),
    )


def dot_product(
    symbols: str, a: np.ndarray, b: np.ndarray, inputs: tuple[Input, ...], plus: float | None = None
) -> Calculation:
    """Calculate a·b, plus a number if given."""
    value, added = float(a @ b) + (plus or 0.0), "" if plus is None else f" + {format_factor(plus)}"
    return Calculation(
        symbols, lambda: f"{format_dot_product(a, b)}{added} = {format_six_digits(value)}", value, inputs
    )


def mean(symbols: str, terms: Sequence[float] | np.ndarray, inputs: tuple[Input, ...], name: str = "") -> Calculation:
    """Calculate the mean of numbers; `name` labels the result."""
    terms = np.asarray(terms)
    value = math.fsum(terms) / len(terms)
    result = f"{name} = " if name else ""
    return Calculation(
        symbols, lambda: f"{result}{format_sum(terms)} / {len(terms)} = {format_six_digits(value)}", value, inputs
    )


def largest(symbols: str, terms: np.ndarray, labels: Sequence[str], inputs: tuple[Input, ...]) -> Calculation:
    """Calculate the maximum of numbers; `labels` names their owners."""
    value = max(terms.tolist())
    return Calculation(
        symbols,
        lambda: _("that of {whose}: {value}", whose=labels[int(terms.argmax())], value=format_six_digits(value)),
        value,
        inputs,
    )


def difference(symbols: str, a: float, b: float, inputs: tuple[Input, ...]) -> Calculation:
    """Calculate a − b."""
    return Calculation(
        symbols, lambda: f"{format_six_digits(a)} − {format_factor(b)} = {format_six_digits(a - b)}", a - b, inputs
    )


def quotient(symbols: str, above: float, below: float, inputs: tuple[Input, ...]) -> Calculation:
    """Calculate above / below; 0 if `below` is 0."""
    value = above / below if below else 0.0
    return Calculation(
        symbols,
        lambda: f"{format_six_digits(above)} / {format_six_digits(below)} = {format_six_digits(value)}",
        value,
        inputs,
    )


Inputs = tuple[Input, ...]  # of the logits (V,)


def log_sum_exp(logits: np.ndarray) -> float:
    """Return the log-sum-exp of the logits, ln Σ e^logits."""
    largest = float(logits.max())
    return largest + math.log(math.fsum(np.exp(logits - largest)))


def probability(logits: np.ndarray, token_id: int, inputs: Inputs) -> Calculation:
    """Calculate a token's softmax probability from the logits (V,)."""
    total = log_sum_exp(logits)
    p = math.exp(logits[token_id] - total)
    numbers = f"p = e^({format_six_digits(logits[token_id])} − {format_factor(total)}) = {format_six_digits(p)}"
    return Calculation(_("p = e^(logit − ln Σ e^logits)"), lambda: numbers, p, inputs)


def rank(logits: np.ndarray, token_id: int, inputs: Inputs) -> Calculation:
    """Calculate a token's rank among the logits (V,), 1 the likeliest."""
    likelier = sum(1 for logit in logits.tolist() if logit > logits[token_id])
    return Calculation(
        _("rank = 1 + how many tokens have a larger logit"),
        lambda: _("rank = 1 + {likelier:,} = {rank:,}", likelier=likelier, rank=likelier + 1),
        likelier + 1.0,
        inputs,
    )


def entropy(logits: np.ndarray, token_id: int, inputs: Inputs) -> Calculation:
    """Calculate the entropy of the distribution; `token_id` is not used."""
    shares = np.exp(logits - log_sum_exp(logits))
    terms = np.array([-p * math.log2(p) if p > 0 else 0.0 for p in shares.tolist()])
    bits = math.fsum(terms)
    return Calculation(
        _("entropy = −Σ p log₂ p"),
        lambda: _("entropy = {sum} = {bits} bits", sum=format_sum(terms), bits=format_six_digits(bits)),
        bits,
        inputs,
    )


def surprisal(logits: np.ndarray, token_id: int, inputs: Inputs) -> Calculation:
    """Calculate a token's surprisal in bits from the logits (V,)."""
    bits = (log_sum_exp(logits) - float(logits[token_id])) / math.log(2)
    p = probability(logits, token_id, inputs).value
    return Calculation(
        _("surprisal = −log₂ p, p = e^logit / Σ e^logits"),
        lambda: _("surprisal = −log₂ {p} = {bits} bits", p=format_six_digits(p), bits=format_six_digits(bits)),
        bits,
        inputs,
    )
