"""Workings of the page, a row a number, with the run's own numbers: what is given, and what follows from it.

A person works with numbers as they are written, with three digits: `blanks.py` allows for that.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from explorer.explain.captured.edits import first_position
from explorer.explain.notation import factor, number, visible
from explorer.language import _
from explorer.lessons.course.look import Look
from explorer.lessons.course.measures import prediction
from explorer.state.errors import UserError

MOST_KEYS, MOST_CANDIDATES = 4, 3


@dataclass(frozen=True)
class Row:
    """A number.

    Attributes:
        says: what it is, or how it is worked out.
        value: the number.
        is_given: whether it needs no working out.
    """

    says: str
    value: float
    is_given: bool = False


def score(look: Look) -> list[Row]:
    """q·k / √d of the chosen cell, from the sum of its products by thirds."""
    s, d = look.selection, look.trace.config.d_head
    turned = "_rot" if look.trace.has("blocks.*.attn.q_rot") else ""
    q, k = (look.trace.of_head(f"blocks.{s.layer}.attn.{name}{turned}", s.head) for name in "qk")
    products = np.sort(q[s.query].astype(np.float64) * k[s.key])
    below, above = products[products < 0].sum(), products[products >= 0].sum()
    return [
        Row(_("the sum of all positive products q·k"), above, True),
        Row(_("the sum of all negative products q·k"), below, True),
        Row(_("d, how many dimensions a head has"), d, True),
        Row(_("q·k = both sums together"), above + below),
        Row("√d", np.sqrt(d)),
        Row("score = q·k / √d", (above + below) / np.sqrt(d)),
    ]


def softmax_row(look: Look) -> list[Row]:
    """The chosen query's scores, as shares."""
    s = look.selection
    scores = look.trace[f"blocks.{s.layer}.attn.scores"][s.head, s.query, : s.query + 1].astype(np.float64)
    if len(scores) > MOST_KEYS:
        raise UserError(_("a row of at most {most} scores is worked out by hand", most=MOST_KEYS))
    names = [visible(token) for token in look.trace.tokens[: len(scores)]]
    return shares(names, scores, _("score of {token}"))


def shares(names: Sequence[str], values: np.ndarray, given: str) -> list[Row]:
    """Numbers, e to the power of each less the largest, their sum, and the share of each."""
    largest = values.max()
    powers = np.exp(values - largest)
    total = powers.sum()
    return [
        *(Row(given.format(token=name), value, True) for name, value in zip(names, values, strict=True)),
        *(Row(f"e^({number(value)} − {factor(largest)})", np.exp(value - largest)) for value in values),
        Row(_("their sum"), total),
        *(Row(_("share of {token}", token=name), share) for name, share in zip(names, powers / total, strict=True)),
    ]


def rmsnorm(look: Look) -> list[Row]:
    """One dimension of a norm: x / √(mean x² + ε) · g."""
    s, trace = look.selection, look.trace
    x = trace[f"blocks.{s.layer}.resid_pre"][s.query].astype(np.float64)
    gain = trace.weights[f"blocks.{s.layer}.attn_norm.weight"].astype(np.float64)[s.dim]
    epsilon = trace.config.norm_eps
    root = np.sqrt((x**2).mean() + epsilon)
    return [
        Row(_("mean of all x²"), (x**2).mean(), True),
        Row("ε", epsilon, True),
        Row(_("x of dimension {dim}", dim=s.dim), x[s.dim], True),
        Row(_("g of dimension {dim}", dim=s.dim), gain, True),
        Row("√(mean x² + ε)", root),
        Row("x / √(mean x² + ε)", x[s.dim] / root),
        Row("x / √(mean x² + ε) · g", x[s.dim] / root * gain),
    ]


def swiglu_neuron(look: Look) -> list[Row]:
    """What the chosen neuron gives at the chosen token."""
    s, trace = look.selection, look.trace
    before, up = (float(trace[f"blocks.{s.layer}.ffn.{name}"][s.query, s.neuron]) for name in ("gate_pre", "up"))
    opened = 1 / (1 + np.exp(-before))
    return [
        Row(_("gate before its activation, W₁x"), before, True),
        Row("up, W₃x", up, True),
        Row(f"σ({number(before)}) = 1 / (1 + e^({number(-before)}))", opened),
        Row(_("gate = W₁x · σ(W₁x)"), before * opened),
        Row(_("the neuron gives gate · up"), before * opened * up),
    ]


def rotation(look: Look) -> list[Row]:
    """One pair of dimensions of the chosen head's q, turned by its position."""
    s, trace = look.selection, look.trace
    pair = s.dim % (trace.config.d_head // 2)
    first, second = (2 * pair, 2 * pair + 1)
    if trace.config.rope_layout != "adjacent":
        first, second = pair, pair + trace.config.d_head // 2
    vector = trace.of_head(f"blocks.{s.layer}.attn.q", s.head)[s.query].astype(np.float64)
    angle = float(trace["rope.angles"][s.query, pair])
    a, b, cos, sin = vector[first], vector[second], np.cos(angle), np.sin(angle)
    return [
        Row(_("a, the pair’s first number"), a, True),
        Row(_("b, the pair’s second number"), b, True),
        Row(_("the angle at position {position}, in radians", position=first_position(trace) + s.query), angle, True),
        Row("cos", cos),
        Row("sin", sin),
        Row("a · cos − b · sin", a * cos - b * sin),
        Row("a · sin + b · cos", a * sin + b * cos),
    ]


def temperature_top_k(look: Look) -> list[Row]:
    """The likeliest tokens’ logits, divided by the temperature, as shares of those that top-k leaves."""
    found, s = prediction(look), look.settings
    if not 1 <= s.top_k <= MOST_CANDIDATES or s.temperature <= 0:
        told = _("at most {most} tokens are worked out by hand: set top-k and a temperature above 0")
        raise UserError(told.format(most=MOST_CANDIDATES))
    kept = found.top(s.top_k)
    names = [visible(look.trace.vocabulary[token_id]) for token_id in kept]
    logits = look.trace["logits"][look.selection.query][kept].astype(np.float64)
    scaled = logits / s.temperature
    return [
        *(Row(_("logit of {token}", token=name), value, True) for name, value in zip(names, logits, strict=True)),
        Row(_("temperature T"), s.temperature, True),
        *(Row(f"{number(logit)} / T", value) for logit, value in zip(logits, scaled, strict=True)),
        *shares(names, scaled, "{token}")[len(names) :],
    ]


WORKINGS: dict[str, Callable[[Look], list[Row]]] = {
    "score": score,
    "softmax_row": softmax_row,
    "rmsnorm": rmsnorm,
    "swiglu_neuron": swiglu_neuron,
    "rotation": rotation,
    "temperature_top_k": temperature_top_k,
}
