"""Worked examples with the run's own numbers: rows of given and of computed numbers.

A person computes with the numbers that are shown: each has the digits that the rows below need, and each row knows how
far their rounding can move it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from explorer.errors import UserError
from explorer.explain.captured.formulas import first_token_position
from explorer.explain.notation import bracket_negative, escape_token
from explorer.lessons.quantities import QuantityContext, format_answer_number
from explorer.translations import _

MAX_KEYS, MAX_CANDIDATES = 4, 3
MIN_DIGITS, MAX_DIGITS = 3, 9


RowText = str | Callable[[Sequence[str]], str]  # a function of the numbers shown in the rows


@dataclass(frozen=True)
class WorkedExampleRow:
    """A row of a worked example: a number, and its name or formula.

    Attributes:
        text: its name, or the formula that computes it; a function if that has numbers of rows above.
        value: the number.
        digits: significant digits that the page shows of it.
        compute: computes it from the values of the rows above; None for a given number.
        calculation: template of that, with `{i}` for the number of row i; empty if the text is it.
        blank_text: the formula while the numbers that it is computed from are blank; "" if `text` has none of these.
    """

    text: RowText
    value: float
    digits: int = MIN_DIGITS
    compute: Callable[[Sequence[float]], float] | None = None
    calculation: str = ""
    blank_text: RowText = ""

    @property
    def display(self) -> str:
        """The number as the page shows it."""
        return format_answer_number(self.value, self.digits)

    @property
    def is_given(self) -> bool:
        """True for a number that needs no computation."""
        return self.compute is None

    @property
    def max_rounding(self) -> float:
        """Half a unit of the last digit shown; 0 for a whole number."""
        mantissa, _e, exponent = self.display.partition("e")
        decimals = len(mantissa.partition(".")[2])
        return (
            0.0 if float(self.value).is_integer() else 0.5 * 10.0 ** (int(exponent.replace("−", "-") or 0) - decimals)
        )


def given_row(text: str, value: float) -> WorkedExampleRow:
    """Return the row of a given number."""
    return WorkedExampleRow(text, float(value))


def add_computed_row(
    rows: list[WorkedExampleRow],
    text: RowText,
    calculation: str,
    compute: Callable[[Sequence[float]], float],
    blank_text: RowText = "",
) -> None:
    """Append a row that is computed from those above."""
    value = float(compute([row.value for row in rows]))
    rows.append(WorkedExampleRow(text, value, MIN_DIGITS, compute, calculation, blank_text))


def work_out(name: str, context: QuantityContext) -> list[WorkedExampleRow]:
    """Return the rows of a worked example, which a person can compute from the numbers shown above each."""
    rows = show_enough_digits(WORKED_EXAMPLES[name](context))
    displays, fields = [row.display for row in rows], ("text", "blank_text")
    return [
        replace(row, **{name: text(displays) for name in fields if callable(text := getattr(row, name))})
        for row in rows
    ]


def show_enough_digits(rows: Sequence[WorkedExampleRow]) -> list[WorkedExampleRow]:
    """Give the inputs of a row more digits until the numbers shown give the number shown."""
    rows = list(rows)
    while inputs := next(filter(None, (imprecise_inputs(rows, i) for i in range(len(rows)))), None):
        for i in inputs:
            rows[i] = replace(rows[i], digits=rows[i].digits + 1)
    return rows


def imprecise_inputs(rows: Sequence[WorkedExampleRow], index: int) -> list[int]:
    """Return the inputs of a row that need a digit more; none if it follows from the numbers shown."""
    row, numbers = rows[index], [parse_display(above.display) for above in rows[:index]]
    if row.compute is None or format_answer_number(row.compute(numbers), row.digits) == row.display:
        return []
    result = row.compute(numbers)
    shifted = ([value + (j == i) for j, value in enumerate(numbers)] for i in range(index))
    are_inputs = [row.compute(values) != result for values in shifted]
    return [
        i
        for i, is_input in enumerate(are_inputs)
        if is_input and numbers[i] != rows[i].value and rows[i].digits < MAX_DIGITS
    ]


def parse_display(display: str) -> float:
    """Return the number that a text shows."""
    return float(display.replace("−", "-").replace(",", ""))


def describe_calculation(rows: Sequence[WorkedExampleRow], row: WorkedExampleRow) -> str:
    """Return a row's formula with the numbers shown, as in "score = q·k / √d = 2.31 / 5.66 ≈ 0.408"."""
    calculation = row.calculation.format(*(bracket_negative(above.display) for above in rows))
    return f"{' = '.join(filter(None, (row.text, calculation)))} ≈ {row.display}"


def rounding_errors(rows: Sequence[WorkedExampleRow]) -> list[float]:
    """Return how far each row can be off for a person who computes with the numbers shown, to first order."""
    errors = np.array([row.max_rounding for row in rows])
    for i, rounded in enumerate(rows):
        shifts = []
        for shift in (rounded.max_rounding, -rounded.max_rounding):
            values: list[float] = []
            for j, row in enumerate(rows):
                value = row.value if row.compute is None or j <= i else row.compute(values)
                values.append(value + shift if j == i else value)
            shifts.append([abs(value - row.value) for value, row in zip(values, rows, strict=True)])
        errors[i + 1 :] += np.max(shifts, axis=0)[i + 1 :]
    return errors.tolist()


def attention_score_rows(context: QuantityContext) -> list[WorkedExampleRow]:
    """Return the rows of q·k / √d of the selected cell, from sums of positive and of negative products."""
    selection, d = context.selection, context.trace.config.d_head
    suffix = "_rot" if context.trace.has_tap("blocks.*.attn.q_rot") else ""
    q, k = (context.trace.head_value(f"blocks.{selection.layer}.attn.{name}{suffix}", selection.head) for name in "qk")
    products = np.sort(q[selection.query].astype(np.float64) * k[selection.key])
    below, above = products[products < 0].sum(), products[products >= 0].sum()
    rows = [
        given_row(_("the sum of all positive products q·k"), above),
        given_row(_("the sum of all negative products q·k"), below),
        given_row(_("d, how many dimensions a head has"), d),
    ]
    add_computed_row(rows, _("q·k = both sums together"), "{0} + {1}", lambda v: v[0] + v[1])
    add_computed_row(rows, "√d", "√{2}", lambda v: np.sqrt(v[2]))
    add_computed_row(rows, _("score = q·k / √d"), "{3} / {4}", lambda v: v[3] / v[4])
    return rows


def attention_softmax_rows(context: QuantityContext) -> list[WorkedExampleRow]:
    """Return the rows of the softmax of the selected query's scores."""
    selection = context.selection
    scores = context.trace[f"blocks.{selection.layer}.attn.scores"][
        selection.head, selection.query, : selection.query + 1
    ].astype(np.float64)
    if len(scores) > MAX_KEYS:
        raise UserError(_("a row of at most {most} scores is worked out by hand", most=MAX_KEYS))
    names = [escape_token(token) for token in context.trace.tokens[: len(scores)]]
    rows = [given_row(_("score of {token}", token=name), value) for name, value in zip(names, scores, strict=True)]
    add_softmax_rows(rows, names)
    return rows


def add_softmax_rows(rows: list[WorkedExampleRow], names: Sequence[str], formulas: Sequence[RowText] = ()) -> None:
    """Append the softmax of the last rows: e to the power of each less the largest, their sum, and the shares.

    Args:
        formulas: of the numbers, if these are computed.
    """
    count, start, total = len(names), len(rows) - len(names), len(rows) + len(names)
    numbers, powers = slice(start, len(rows)), slice(len(rows), total)
    values = [row.value for row in rows[numbers]]
    largest = int(np.argmax(values))
    for i in range(count):
        add_computed_row(
            rows,
            lambda shown, i=i: f"e^({shown[start + i]} − {bracket_negative(shown[start + largest])})",
            "",
            lambda v, i=i: np.exp(v[numbers][i] - max(v[numbers])),
            (lambda shown, i=i: f"e^({formulas[i](shown)} − {formulas[largest](shown)})") if formulas else "",
        )
    power_places = [f"{{{i}}}" for i in range(powers.start, powers.stop)]
    add_computed_row(rows, _("their sum"), " + ".join(power_places), lambda v: sum(v[powers]))
    for i, (name, power) in enumerate(zip(names, power_places, strict=True)):
        text, calculation = _("share of {token}", token=name), f"{power} / {{{total}}}"
        add_computed_row(rows, text, calculation, lambda v, i=i: v[powers][i] / v[total])


def rmsnorm_rows(context: QuantityContext) -> list[WorkedExampleRow]:
    """Return the rows of one dimension of an RMSNorm: x / √(mean x² + ε) · g."""
    selection, trace = context.selection, context.trace
    x = trace[f"blocks.{selection.layer}.resid_pre"][selection.query].astype(np.float64)
    gain = trace.weights[f"blocks.{selection.layer}.attn_norm.weight"].astype(np.float64)[selection.dim]
    rows = [
        given_row(_("mean of all x²"), (x**2).mean()),
        given_row("ε", trace.config.norm_eps),
        given_row(_("x of dimension {dim}", dim=selection.dim), x[selection.dim]),
        given_row(_("g of dimension {dim}", dim=selection.dim), gain),
    ]
    add_computed_row(rows, "√(mean x² + ε)", "√({0} + {1})", lambda v: np.sqrt(v[0] + v[1]))
    add_computed_row(rows, "x / √(mean x² + ε)", "{2} / {4}", lambda v: v[2] / v[4])
    add_computed_row(rows, "x / √(mean x² + ε) · g", "{5} · {3}", lambda v: v[5] * v[3])
    return rows


def swiglu_neuron_rows(context: QuantityContext) -> list[WorkedExampleRow]:
    """Return the rows of the selected neuron's SwiGLU activation at the selected token."""
    selection, trace = context.selection, context.trace
    before, up = (
        float(trace[f"blocks.{selection.layer}.ffn.{name}"][selection.query, selection.neuron])
        for name in ("gate_pre", "up")
    )
    rows = [given_row(_("gate before its activation, W₁x"), before), given_row("up, W₃x", up)]
    sign = "" if before < 0 else "−"  # of −x

    def describe_sigmoid(shown: Sequence[str]) -> str:
        return f"σ({shown[0]}) = 1 / (1 + e^({sign}{shown[0].removeprefix('−')}))"

    add_computed_row(rows, describe_sigmoid, "", lambda v: 1 / (1 + np.exp(-v[0])))
    add_computed_row(rows, _("gate = W₁x · σ(W₁x)"), "{0} · {2}", lambda v: v[0] * v[2])
    add_computed_row(rows, _("the neuron gives gate · up"), "{3} · {1}", lambda v: v[3] * v[1])
    return rows


def query_rotation_rows(context: QuantityContext) -> list[WorkedExampleRow]:
    """Return the rows of the rotation of a pair of dimensions of the selected head's query vector by its position."""
    selection, trace = context.selection, context.trace
    pair = selection.dim % (trace.config.d_head // 2)
    first, second = (2 * pair, 2 * pair + 1)
    if trace.config.rope_layout != "adjacent":
        first, second = pair, pair + trace.config.d_head // 2
    vector = trace.head_value(f"blocks.{selection.layer}.attn.q", selection.head)[selection.query].astype(np.float64)
    angle = float(trace["rope.angles"][selection.query, pair])
    position = first_token_position(trace) + selection.query
    rows = [
        given_row(_("a, the pair’s first number"), vector[first]),
        given_row(_("b, the pair’s second number"), vector[second]),
        given_row(_("the angle at position {position}, in radians", position=position), angle),
    ]
    add_computed_row(rows, "cos", "cos({2})", lambda v: np.cos(v[2]))
    add_computed_row(rows, "sin", "sin({2})", lambda v: np.sin(v[2]))
    add_computed_row(rows, "a · cos − b · sin", "{0} · {3} − {1} · {4}", lambda v: v[0] * v[3] - v[1] * v[4])
    add_computed_row(rows, "a · sin + b · cos", "{0} · {4} + {1} · {3}", lambda v: v[0] * v[4] + v[1] * v[3])
    return rows


def temperature_top_k_rows(context: QuantityContext) -> list[WorkedExampleRow]:
    """Return the rows of the softmax of the top-k logits, divided by the temperature."""
    next_token, settings = context.prediction, context.settings
    if not 1 <= settings.top_k <= MAX_CANDIDATES or settings.temperature <= 0:
        template = _("at most {most} tokens are worked out by hand: set top-k and a temperature above 0")
        raise UserError(template.format(most=MAX_CANDIDATES))
    token_ids = next_token.top(settings.top_k)
    names = [escape_token(context.trace.vocabulary[token_id]) for token_id in token_ids]
    logits = context.trace["logits"][context.selection.query][token_ids].astype(np.float64)
    rows = [given_row(_("logit of {token}", token=name), value) for name, value in zip(names, logits, strict=True)]
    count = len(rows)
    rows.append(given_row(_("temperature T"), settings.temperature))
    formulas = [lambda shown, i=i: f"{shown[i]} / T" for i in range(count)]
    for i, formula in enumerate(formulas):
        add_computed_row(rows, formula, f"{{{i}}} / {{{count}}}", lambda v, i=i: v[i] / v[count])
    add_softmax_rows(rows, names, formulas)
    return rows


WORKED_EXAMPLES: dict[str, Callable[[QuantityContext], list[WorkedExampleRow]]] = {
    "score": attention_score_rows,
    "softmax_row": attention_softmax_rows,
    "rmsnorm": rmsnorm_rows,
    "swiglu_neuron": swiglu_neuron_rows,
    "rotation": query_rotation_rows,
    "temperature_top_k": temperature_top_k_rows,
}
