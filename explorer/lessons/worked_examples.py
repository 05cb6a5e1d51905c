"""Worked examples with the run's own numbers: rows of given and of computed numbers.

A person computes with numbers of three digits: `questions.py` allows for that.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from explorer.errors import UserError
from explorer.explain.captured.interventions import first_token_position
from explorer.explain.notation import bracket_negative, escape_token, format_number
from explorer.lessons.quantities import QuantityContext, predict_next_token
from explorer.translations import _

MAX_KEYS, MAX_CANDIDATES = 4, 3


@dataclass(frozen=True)
class WorkedExampleRow:
    """A row of a worked example: a number, and its name or formula.

    Attributes:
        text: its name, or the formula that computes it.
        value: the number.
        is_given: whether it needs no computation.
        blank_text: the formula while the numbers that it is computed from are blank; "" if `text` has none of these.
    """

    text: str
    value: float
    is_given: bool = False
    blank_text: str = ""


def attention_score_rows(context: QuantityContext) -> list[WorkedExampleRow]:
    """Return the rows of q·k / √d of the selected cell, from sums of positive and of negative products."""
    selection, d = context.selection, context.trace.config.d_head
    suffix = "_rot" if context.trace.has_tap("blocks.*.attn.q_rot") else ""
    q, k = (context.trace.head_value(f"blocks.{selection.layer}.attn.{name}{suffix}", selection.head) for name in "qk")
    products = np.sort(q[selection.query].astype(np.float64) * k[selection.key])
    below, above = products[products < 0].sum(), products[products >= 0].sum()
    return [
        WorkedExampleRow(_("the sum of all positive products q·k"), above, True),
        WorkedExampleRow(_("the sum of all negative products q·k"), below, True),
        WorkedExampleRow(_("d, how many dimensions a head has"), d, True),
        WorkedExampleRow(_("q·k = both sums together"), above + below),
        WorkedExampleRow("√d", np.sqrt(d)),
        WorkedExampleRow("score = q·k / √d", (above + below) / np.sqrt(d)),
    ]


def attention_softmax_rows(context: QuantityContext) -> list[WorkedExampleRow]:
    """Return the rows of the softmax of the selected query's scores."""
    selection = context.selection
    scores = context.trace[f"blocks.{selection.layer}.attn.scores"][
        selection.head, selection.query, : selection.query + 1
    ].astype(np.float64)
    if len(scores) > MAX_KEYS:
        raise UserError(_("a row of at most {most} scores is worked out by hand", most=MAX_KEYS))
    names = [escape_token(token) for token in context.trace.tokens[: len(scores)]]
    return softmax_rows(names, scores, _("score of {token}"))


def softmax_rows(
    names: Sequence[str], values: np.ndarray, template: str, formulas: Sequence[str] = ()
) -> list[WorkedExampleRow]:
    """Return the rows of a softmax: e to the power of each number less the largest, their sum, and the shares.

    Args:
        formulas: of the numbers, if these are computed.
    """
    largest = values.max()
    blank_texts = [f"e^({formula} − {formulas[values.argmax()]})" for formula in formulas] or [""] * len(values)
    powers = np.exp(values - largest)
    total = powers.sum()
    return [
        *(
            WorkedExampleRow(template.format(token=name), value, True)
            for name, value in zip(names, values, strict=True)
        ),
        *(
            WorkedExampleRow(
                f"e^({format_number(value)} − {bracket_negative(format_number(largest))})",
                np.exp(value - largest),
                blank_text=blank_text,
            )
            for value, blank_text in zip(values, blank_texts, strict=True)
        ),
        WorkedExampleRow(_("their sum"), total),
        *(
            WorkedExampleRow(_("share of {token}", token=name), share)
            for name, share in zip(names, powers / total, strict=True)
        ),
    ]


def rmsnorm_rows(context: QuantityContext) -> list[WorkedExampleRow]:
    """Return the rows of one dimension of an RMSNorm: x / √(mean x² + ε) · g."""
    selection, trace = context.selection, context.trace
    x = trace[f"blocks.{selection.layer}.resid_pre"][selection.query].astype(np.float64)
    gain = trace.weights[f"blocks.{selection.layer}.attn_norm.weight"].astype(np.float64)[selection.dim]
    epsilon = trace.config.norm_eps
    root = np.sqrt((x**2).mean() + epsilon)
    return [
        WorkedExampleRow(_("mean of all x²"), (x**2).mean(), True),
        WorkedExampleRow("ε", epsilon, True),
        WorkedExampleRow(_("x of dimension {dim}", dim=selection.dim), x[selection.dim], True),
        WorkedExampleRow(_("g of dimension {dim}", dim=selection.dim), gain, True),
        WorkedExampleRow("√(mean x² + ε)", root),
        WorkedExampleRow("x / √(mean x² + ε)", x[selection.dim] / root),
        WorkedExampleRow("x / √(mean x² + ε) · g", x[selection.dim] / root * gain),
    ]


def swiglu_neuron_rows(context: QuantityContext) -> list[WorkedExampleRow]:
    """Return the rows of the selected neuron's SwiGLU activation at the selected token."""
    selection, trace = context.selection, context.trace
    before, up = (
        float(trace[f"blocks.{selection.layer}.ffn.{name}"][selection.query, selection.neuron])
        for name in ("gate_pre", "up")
    )
    sigmoid = 1 / (1 + np.exp(-before))
    return [
        WorkedExampleRow(_("gate before its activation, W₁x"), before, True),
        WorkedExampleRow("up, W₃x", up, True),
        WorkedExampleRow(f"σ({format_number(before)}) = 1 / (1 + e^({format_number(-before)}))", sigmoid),
        WorkedExampleRow(_("gate = W₁x · σ(W₁x)"), before * sigmoid),
        WorkedExampleRow(_("the neuron gives gate · up"), before * sigmoid * up),
    ]


def query_rotation_rows(context: QuantityContext) -> list[WorkedExampleRow]:
    """Return the rows of the rotation of a pair of dimensions of the selected head's query vector by its position."""
    selection, trace = context.selection, context.trace
    pair = selection.dim % (trace.config.d_head // 2)
    first, second = (2 * pair, 2 * pair + 1)
    if trace.config.rope_layout != "adjacent":
        first, second = pair, pair + trace.config.d_head // 2
    vector = trace.head_value(f"blocks.{selection.layer}.attn.q", selection.head)[selection.query].astype(np.float64)
    angle = float(trace["rope.angles"][selection.query, pair])
    a, b, cos, sin = vector[first], vector[second], np.cos(angle), np.sin(angle)
    return [
        WorkedExampleRow(_("a, the pair’s first number"), a, True),
        WorkedExampleRow(_("b, the pair’s second number"), b, True),
        WorkedExampleRow(
            _("the angle at position {position}, in radians", position=first_token_position(trace) + selection.query),
            angle,
            True,
        ),
        WorkedExampleRow("cos", cos),
        WorkedExampleRow("sin", sin),
        WorkedExampleRow("a · cos − b · sin", a * cos - b * sin),
        WorkedExampleRow("a · sin + b · cos", a * sin + b * cos),
    ]


def temperature_top_k_rows(context: QuantityContext) -> list[WorkedExampleRow]:
    """Return the rows of the softmax of the top-k logits, divided by the temperature."""
    next_token, settings = predict_next_token(context), context.settings
    if not 1 <= settings.top_k <= MAX_CANDIDATES or settings.temperature <= 0:
        template = _("at most {most} tokens are worked out by hand: set top-k and a temperature above 0")
        raise UserError(template.format(most=MAX_CANDIDATES))
    token_ids = next_token.top(settings.top_k)
    names = [escape_token(context.trace.vocabulary[token_id]) for token_id in token_ids]
    logits = context.trace["logits"][context.selection.query][token_ids].astype(np.float64)
    scaled, formulas = logits / settings.temperature, [f"{format_number(logit)} / T" for logit in logits]
    return [
        *(
            WorkedExampleRow(_("logit of {token}", token=name), value, True)
            for name, value in zip(names, logits, strict=True)
        ),
        WorkedExampleRow(_("temperature T"), settings.temperature, True),
        *map(WorkedExampleRow, formulas, scaled),
        *softmax_rows(names, scaled, "{token}", formulas)[len(names) :],
    ]


WORKED_EXAMPLES: dict[str, Callable[[QuantityContext], list[WorkedExampleRow]]] = {
    "score": attention_score_rows,
    "softmax_row": attention_softmax_rows,
    "rmsnorm": rmsnorm_rows,
    "swiglu_neuron": swiglu_neuron_rows,
    "rotation": query_rotation_rows,
    "temperature_top_k": temperature_top_k_rows,
}
