"""Kinds of questions in lessons, the parsers of their blocks, and grades of replies."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from explorer.explain.notation import escape_token, format_number, join_names, quote_token
from explorer.lessons.quantities import (
    COUNTS,
    QUANTITY_KINDS,
    SHARES,
    LessonCondition,
    LessonQuantity,
    QuantityContext,
    format_answer_number,
    lesson_state_fields,
    parse_condition,
    parse_quantity,
    quantity_argument_kinds,
)
from explorer.lessons.tasks import TASKS, Task
from explorer.lessons.worked_examples import (
    WORKED_EXAMPLES,
    WorkedExampleRow,
    describe_calculation,
    rounding_errors,
    work_out,
)
from explorer.lessons.yaml_blocks import (
    LessonError,
    ListWithLines,
    MappingWithLines,
    format_kinds,
    is_value_of_kind,
    validate_mapping_fields,
)
from explorer.state.selection import parse_index
from explorer.translations import _, ngettext

SEPARATOR = "_"  # between the numbers of a reply; URLs keep it unescaped
NUM_BINS = 10  # in which a class's numbers are counted


@dataclass(frozen=True)
class ReplyGrade:
    """The grade of a reply, with the true answer.

    Attributes:
        is_right: None if there is no reply and only the true answer was requested.
        text: the verdict in a sentence or two.
        truth: data with which the widget draws the true answer.
    """

    is_right: bool | None
    text: str
    truth: Mapping[str, Any] = field(default_factory=dict)


class Question(Protocol):
    """Protocol of a lesson's question; the true answer is computed from the run each time."""

    def prompt_payload(self, context: QuantityContext) -> dict[str, Any]:
        """Return the widget's data for the question, with its "kind", and without the true answer."""

    def grade(self, context: QuantityContext, reply: str | None) -> ReplyGrade | None:
        """Grade a reply; None for an invalid one. Without a reply, return only the true answer."""

    def tally_key(self, reply: str) -> str | None:
        """Return the key under which a class's equal replies are counted; None for an invalid reply. Uses no run."""


def quote_option(text: str) -> str:
    """Return an option as a verdict names it: without its full stop, in quotes unless it has some."""
    text = text.rstrip(".。")
    return text if "“" in text else f"“{text}”"


def append_tokens(text: str, quantity: LessonQuantity | None, context: QuantityContext) -> str:
    """Return a text with the tokens that a quantity counts, if it does, as in "3: ·un + ha + ppy"."""
    tokens = quantity.counted_tokens(context) if quantity else ()
    return f"{text}: {' + '.join(map(escape_token, tokens))}" if tokens else text


def parse_reply_number(text: str) -> float | None:
    """Parse a number that a person may have written; None for anything else."""
    if SEPARATOR in text:  # which Python takes within a number
        return None
    try:
        value = float(text.strip().replace("−", "-").replace(",", "."))
    except ValueError:
        return None
    return value if abs(value) < 1e12 else None  # nor NaN


def parse_reply_numbers(reply: str, count: int) -> list[float] | None:
    """Parse a reply of `count` numbers; None for anything else."""
    numbers = [parse_reply_number(part) for part in reply.split(SEPARATOR)]
    return numbers if len(numbers) == count and None not in numbers else None


def bin_index(value: float, lowest: float, highest: float) -> int:
    """Return the index of a number's bin on an axis, from 0; numbers beyond an end are in the bin there."""
    return max(0, min(NUM_BINS - 1, int(NUM_BINS * (value - lowest) / (highest - lowest))))


@dataclass(frozen=True)
class NumberQuestion:
    """A question for a number; the reply is a number on a slider.

    Attributes:
        quantity: the number.
        lowest, highest: ends of the slider, widened to the true number once that is drawn.
        tolerance: maximum error of a reply.
    """

    quantity: LessonQuantity
    lowest: float
    highest: float
    tolerance: float

    def prompt_payload(self, context: QuantityContext) -> dict[str, Any]:
        ends = {"lowest": self.lowest, "highest": self.highest}
        return {"kind": "number", "is_count": self.quantity.name in COUNTS} | ends

    def grade(self, context: QuantityContext, reply: str | None) -> ReplyGrade | None:
        truth = self.quantity.evaluate(context)
        ends = {"lowest": min(self.lowest, truth), "highest": max(self.highest, truth)}
        payload = {"truth": truth, "written": format_answer_number(truth), "within": self.tolerance} | ends
        number = append_tokens(format_answer_number(truth), self.quantity, context)
        verdict = _("The run has {number}.", number=number)
        if reply is None:
            return ReplyGrade(None, verdict, payload)
        if (value := parse_reply_number(reply)) is None:
            return None
        if value != truth:
            error_text = _("You are off by {difference}.", difference=format_answer_number(abs(value - truth)))
            verdict = f"{verdict} {error_text}"
        is_right = abs(value - truth) <= self.tolerance
        return ReplyGrade(is_right, verdict, payload | {"yours": format_answer_number(value)})

    def tally_key(self, reply: str) -> str | None:
        value = parse_reply_number(reply)
        return None if value is None else str(bin_index(value, self.lowest, self.highest))


def parse_number_question(ask: MappingWithLines, check: MappingWithLines | None) -> NumberQuestion:
    """Parse a number question from a lesson's blocks; LessonError where they are invalid."""
    spec = check["number"]
    if not isinstance(spec, MappingWithLines):
        raise LessonError(check.lines["number"], f"“number” is a mapping with “of” and “within”, got {spec!r:.60}")
    validate_mapping_fields(spec, {"of": QUANTITY_KINDS, "within": float}, ("of", "within"))
    for name in ("from", "to"):
        if name not in ask:
            raise LessonError(ask.line, f"a number is chosen on a slider: “{name}” is missing")
    if not ask["from"] < ask["to"]:
        raise LessonError(ask.lines["to"], f"“from” must be below “to”, got {ask['from']} and {ask['to']}")
    measured = parse_quantity(spec["of"], spec.lines["of"])
    return NumberQuestion(measured, float(ask["from"]), float(ask["to"]), float(spec["within"]))


@dataclass(frozen=True)
class ChoiceOption:
    """A sentence, the condition under which it is right, and a number drawn beside it after the reply."""

    text: str
    when: LessonCondition
    value: LessonQuantity | None


@dataclass(frozen=True)
class ChoiceQuestion:
    """A multiple-choice question; the reply is the number of an option, from 1."""

    options: tuple[ChoiceOption, ...]

    def prompt_payload(self, context: QuantityContext) -> dict[str, Any]:
        return {"kind": "choice", "options": [option.text for option in self.options]}

    def grade(self, context: QuantityContext, reply: str | None) -> ReplyGrade | None:
        right = [i for i, option in enumerate(self.options, 1) if option.when.holds(context)]
        values = [option.value and option.value.evaluate(context) for option in self.options]
        truth = {
            "right": right,
            "shown": [None if value is None else [value, format_answer_number(value)] for value in values],
            "are_shares": all(option.value is None or option.value.name in SHARES for option in self.options),
        }
        is_right = None
        if reply is not None:
            chosen = parse_index(reply)
            if chosen is None or not 1 <= chosen <= len(self.options):
                return None
            is_right = chosen in right
        if not right:
            return ReplyGrade(is_right, _("In this run none of them is right."), truth)
        options = [self.options[number - 1] for number in right]
        answers = [append_tokens(quote_option(option.text), option.value, context) for option in options]
        verdict = _("The answer is {places}.", places=join_names(answers))
        return ReplyGrade(is_right, verdict, truth)

    def tally_key(self, reply: str) -> str | None:
        chosen = parse_index(reply)
        return str(chosen) if chosen is not None and 1 <= chosen <= len(self.options) else None


def parse_choice_question(ask: MappingWithLines, check: MappingWithLines | None) -> ChoiceQuestion:
    """Parse a multiple-choice question from a lesson's blocks; LessonError where they are invalid."""
    options, parsed = ask.get("options"), []
    if not isinstance(options, ListWithLines) or not 2 <= len(options) <= 6:
        raise LessonError(ask.line, "a choice has “options”, a list of 2 to 6")
    for spec, line in zip(options, options.lines, strict=True):
        if not isinstance(spec, MappingWithLines):
            raise LessonError(line, f"an option is a mapping with “says” and “when”, got {spec!r:.60}")
        validate_mapping_fields(
            spec, {"says": str, "when": MappingWithLines, "shows": QUANTITY_KINDS}, ("says", "when")
        )
        shows = parse_quantity(spec["shows"], spec.lines["shows"]) if "shows" in spec else None
        parsed.append(ChoiceOption(spec["says"], parse_condition(spec["when"], spec.lines["when"]), shows))
    return ChoiceQuestion(tuple(parsed))


NUM_SHOWN_TOKENS, MAX_CHARS = 5, 40


@dataclass(frozen=True)
class TokenQuestion:
    """A question for a token; the reply is a word, with or without the space before it.

    Attributes:
        rank: of the token.
        options: words to choose from; empty for any word.
    """

    rank: int
    options: tuple[str, ...] = ()

    def prompt_payload(self, context: QuantityContext) -> dict[str, Any]:
        return {"kind": "token", "options": list(self.options)}

    def grade(self, context: QuantityContext, reply: str | None) -> ReplyGrade | None:
        next_token, vocabulary = context.prediction, context.trace.vocabulary
        truth = int(next_token.top(self.rank)[-1])
        token_ids = [int(token_id) for token_id in next_token.top(max(NUM_SHOWN_TOKENS, self.rank))]
        reply_id = None
        if reply is not None:
            word = reply.strip()
            if not word or len(reply) > MAX_CHARS:
                return None
            same = [i for i, text in enumerate(vocabulary) if normalise_reply_word(text) == normalise_reply_word(word)]
            reply_id = max(same, key=lambda token_id: next_token.plain[token_id], default=None)
            token_ids += [reply_id] if reply_id is not None and reply_id not in token_ids else []
        bars = [
            {
                "token": vocabulary[i],
                "rank": next_token.rank(i),
                "share": float(next_token.plain[i]),
                "number": format_number(next_token.plain[i]),
            }
            for i in token_ids
        ]
        payload = {
            "bars": bars,
            "right": token_ids.index(truth),
            "yours": token_ids.index(reply_id) if reply_id is not None else None,
        }
        values = {"token": quote_token(vocabulary[truth]), "probability": format_number(next_token.plain[truth])}
        verdict = _("The model says {token}, with probability {probability}.", **values)
        if reply is None:
            return ReplyGrade(None, verdict, payload)
        if reply_id is None:
            none = _("{word} is not a single token of this model.", word=quote_token(reply.strip()))
            verdict = f"{none} {verdict}"
        elif reply_id != truth:
            ranking = {"token": quote_token(vocabulary[reply_id]), "rank": next_token.rank(reply_id)}
            verdict = " ".join((verdict, _("It gives {token} place {rank:,}.", **ranking)))
        return ReplyGrade(reply_id == truth, verdict, payload)

    def tally_key(self, reply: str) -> str | None:
        word = normalise_reply_word(reply)
        return word if word.strip() and len(reply) <= MAX_CHARS and word.isprintable() else None


def normalise_reply_word(text: str) -> str:
    """Return a word stripped and case-folded for comparison, or the text itself if it is only spaces."""
    return text.strip().casefold() or text


def parse_token_question(ask: MappingWithLines, check: MappingWithLines | None) -> TokenQuestion:
    """Parse a token question from a lesson's blocks; LessonError where they are invalid."""
    spec = check["top_token"]
    if not isinstance(spec, MappingWithLines):
        raise LessonError(check.lines["top_token"], f"“top_token” is a mapping with “rank”, got {spec!r:.60}")
    validate_mapping_fields(spec, {"rank": int}, ("rank",))
    if not 1 <= spec["rank"] <= 20:
        raise LessonError(spec.line, f"“rank” is 1 to 20, got {spec['rank']}")
    options = ask.get("options", ListWithLines())
    if not all(isinstance(option, str) for option in options):
        raise LessonError(ask.line, "the “options” of a token are texts")
    return TokenQuestion(spec["rank"], tuple(options))


MAX_POINTS = 12


@dataclass(frozen=True)
class CurveQuestion:
    """A question for a curve; the reply is a number for each point.

    Attributes:
        quantity: the number at a point.
        argument: the argument, or the state field, that varies between points.
        values: its values.
        labels: labels of the points.
        lowest, highest: ends of the axis.
        tolerance: maximum error of each point.
    """

    quantity: LessonQuantity
    argument: str
    values: tuple[Any, ...]
    labels: tuple[str, ...]
    lowest: float
    highest: float
    tolerance: float

    def prompt_payload(self, context: QuantityContext) -> dict[str, Any]:
        return {"kind": "curve", "labels": list(self.labels), "lowest": self.lowest, "highest": self.highest}

    def grade(self, context: QuantityContext, reply: str | None) -> ReplyGrade | None:
        truth = [self.quantity.replace(self.argument, value).evaluate(context) for value in self.values]
        ends = {"lowest": min(self.lowest, *truth), "highest": max(self.highest, *truth)}
        payload = {
            "truth": truth,
            "written": [format_answer_number(value) for value in truth],
            "within": self.tolerance,
        } | ends
        numbers = ", ".join(
            f"{label}: {format_answer_number(value)}" for label, value in zip(self.labels, truth, strict=True)
        )
        verdict = _("The run has {numbers}.", numbers=numbers)
        if reply is None:
            return ReplyGrade(None, verdict, payload)
        if (points := parse_reply_numbers(reply, len(truth))) is None:
            return None
        near = sum(abs(a - b) <= self.tolerance for a, b in zip(points, truth, strict=True))
        near_enough = _("{near} of {count} points are near enough.", near=near, count=len(truth))
        return ReplyGrade(near == len(truth), f"{near_enough} {verdict}", payload)

    def tally_key(self, reply: str) -> str | None:
        points = parse_reply_numbers(reply, len(self.values))
        return points and SEPARATOR.join(str(bin_index(value, self.lowest, self.highest)) for value in points)


def parse_curve_question(ask: MappingWithLines, check: MappingWithLines | None) -> CurveQuestion:
    """Parse a curve question from a lesson's blocks; LessonError where they are invalid."""
    spec = check["curve"]
    if not isinstance(spec, MappingWithLines):
        raise LessonError(
            check.lines["curve"], f"“curve” is a mapping with “of”, “over” and “within”, got {spec!r:.60}"
        )
    validate_mapping_fields(
        spec, {"of": QUANTITY_KINDS, "over": MappingWithLines, "within": float}, ("of", "over", "within")
    )
    measured, axis = parse_quantity(spec["of"], spec.lines["of"]), spec["over"]
    name, values = next(iter(axis.items()), ("", None))
    if len(axis) != 1 or name not in {*lesson_state_fields(), *quantity_argument_kinds(measured.name)}:
        raise LessonError(axis.line, "“over” has one name, of the address or an argument, and the list of its values")
    if not isinstance(values, ListWithLines) or not 2 <= len(values) <= MAX_POINTS:
        raise LessonError(axis.line, f"a curve has 2 to {MAX_POINTS} values, got {values!r:.60}")
    labels = ask.get("labels", values)
    if "from" not in ask or "to" not in ask or not ask["from"] < ask["to"]:
        raise LessonError(ask.line, "a curve has “from” below “to”, the ends of its axis")
    if len(labels) != len(values):
        raise LessonError(ask.line, f"a curve has a label a value: {len(values)}, got {len(labels)}")
    ends = float(ask["from"]), float(ask["to"])
    return CurveQuestion(measured, name, tuple(values), tuple(map(str, labels)), *ends, float(spec["within"]))


AXES = ("query", "key", "layer", "head")
MAX_CELLS = 24  # cells along an axis


@dataclass(frozen=True)
class LargestCellQuestion:
    """A question for the largest cell; the reply is a row and a column of the heatmap, from 0.

    Attributes:
        quantity: the number in a cell.
        rows, columns: the state field, or argument, whose values the rows and the columns have.
        row_values, column_values: these values; empty for all.
    """

    quantity: LessonQuantity
    rows: str = "query"
    columns: str = "key"
    row_values: tuple[int, ...] = ()
    column_values: tuple[int, ...] = ()

    def prompt_payload(self, context: QuantityContext) -> dict[str, Any]:
        rows, columns = self._axis_values(context)
        return {
            "kind": "cell",
            "rows": [self._label(context, self.rows, value) for value in rows],
            "columns": [self._label(context, self.columns, value) for value in columns],
            "there": [[self._exists(row, column) for column in columns] for row in rows],
        }

    def grade(self, context: QuantityContext, reply: str | None) -> ReplyGrade | None:
        rows, columns = self._axis_values(context)
        values = np.full((len(rows), len(columns)), np.nan)
        for i, row in enumerate(rows):
            for j, column in enumerate(columns):
                if self._exists(row, column):
                    values[i, j] = self.quantity.replace(self.rows, row).replace(self.columns, column).evaluate(context)
        largest = np.unravel_index(np.nanargmax(values), values.shape)
        texts = [[None if np.isnan(value) else [float(value), format_number(value)] for value in row] for row in values]
        truth = {"values": texts, "right": [int(i) for i in largest], "are_shares": self.quantity.name in SHARES}
        row = self._label(context, self.rows, rows[largest[0]])
        column = self._label(context, self.columns, columns[largest[1]])
        cell = {"row": row, "column": column, "value": format_number(values[largest])}
        verdict = _("The largest is row {row}, column {column}: {value}.", **cell)
        if reply is None:
            return ReplyGrade(None, verdict, truth)
        chosen = tuple(parse_index(part) for part in reply.split(SEPARATOR))
        if len(chosen) != 2 or None in chosen or any(i >= n for i, n in zip(chosen, values.shape, strict=True)):
            return None
        if np.isnan(values[chosen]):
            return None
        if chosen != largest:
            verdict = " ".join((_("Yours has {value}.", value=format_number(values[chosen])), verdict))
        return ReplyGrade(chosen == largest, verdict, truth)

    def tally_key(self, reply: str) -> str | None:
        chosen = [parse_index(part) for part in reply.split(SEPARATOR)]
        sizes = [len(values) or MAX_CELLS for values in (self.row_values, self.column_values)]
        is_valid = len(chosen) == 2 and all(i is not None and i < n for i, n in zip(chosen, sizes, strict=True))
        return SEPARATOR.join(map(str, chosen)) if is_valid else None

    def _axis_values(self, context: QuantityContext) -> tuple[tuple[int, ...], tuple[int, ...]]:
        config, tokens = context.trace.config, len(context.trace)
        sizes = {"query": tokens, "key": tokens, "layer": config.num_layers, "head": config.num_heads}

        def existing(name: str, values: tuple[int, ...]) -> tuple[int, ...]:
            return tuple(value for value in values if value < sizes[name]) or tuple(range(sizes[name]))[:MAX_CELLS]

        return existing(self.rows, self.row_values), existing(self.columns, self.column_values)

    def _exists(self, row: int, column: int) -> bool:
        return (self.rows, self.columns) != ("query", "key") or column <= row

    @staticmethod
    def _label(context: QuantityContext, name: str, value: int) -> str:
        return f"{escape_token(context.trace.tokens[value])} ({value})" if name in ("query", "key") else str(value)


def parse_largest_cell_question(ask: MappingWithLines, check: MappingWithLines | None) -> LargestCellQuestion:
    """Parse a largest-cell question from a lesson's blocks; LessonError where they are invalid."""
    spec = check["argmax_cell"]
    if not isinstance(spec, MappingWithLines):
        raise LessonError(check.lines["argmax_cell"], f"“argmax_cell” is a mapping with “of”, got {spec!r:.60}")
    validate_mapping_fields(
        spec, {"of": QUANTITY_KINDS, "rows": (str, MappingWithLines), "columns": (str, MappingWithLines)}, ("of",)
    )
    rows, row_values = parse_heatmap_axis(spec, "rows", "query")
    columns, column_values = parse_heatmap_axis(spec, "columns", "key")
    return LargestCellQuestion(parse_quantity(spec["of"], spec.lines["of"]), rows, columns, row_values, column_values)


def parse_heatmap_axis(spec: MappingWithLines, name: str, default: str) -> tuple[str, tuple[int, ...]]:
    """Parse an axis of the heatmap: a name, or a name with its values."""
    value = spec.get(name, default)
    axis, values = (value, ListWithLines()) if isinstance(value, str) else next(iter(value.items()), ("", None))
    if axis not in AXES:
        raise LessonError(spec.lines.get(name, spec.line), f"“{name}” are one of {', '.join(AXES)}, got {axis!r:.60}")
    if (
        not isinstance(values, ListWithLines)
        or not all(parse_index(index) is not None for index in values)
        or len(values) > MAX_CELLS
    ):
        raise LessonError(
            spec.lines.get(name, spec.line), f"the values of “{axis}” are a list of at most {MAX_CELLS} whole numbers"
        )
    return axis, tuple(values)


BLANKS = ("none", "one", "all")
MAX_BLANKS = 40  # blanks, of whichever working
RELATIVE_TOLERANCE, ABSOLUTE_TOLERANCE = (
    0.02,
    0.006,
)  # errors accepted in a reply, as people compute with three digits


@dataclass(frozen=True)
class FillInBlanksQuestion:
    """A worked example with blanks; the reply is a number for each.

    Attributes:
        worked_example: its name.
        blanks: "none" for an example, "one" for its result, "all" for all computed numbers.
        change: state fields to replace before it is computed.
    """

    worked_example: str
    blanks: str
    change: dict[str, Any]

    def prompt_payload(self, context: QuantityContext) -> dict[str, Any]:
        rows = self._rows(context)
        blanks = self._blank_indices(rows)
        lines = [
            {
                "says": (row.blank_text if self.blanks == "all" else "") or row.text,
                "value": None if i in blanks else row.display,
            }
            for i, row in enumerate(rows)
        ]
        return {"kind": "blanks", "rows": lines, "is_example": self.blanks == "none"}

    def grade(self, context: QuantityContext, reply: str | None) -> ReplyGrade | None:
        rows = self._rows(context)
        blanks = self._blank_indices(rows)
        truth = {"truth": [rows[i].display for i in blanks]}
        if reply is None:
            return ReplyGrade(None, "", truth)
        if not blanks or (numbers := parse_reply_numbers(reply, len(blanks))) is None:
            return None
        errors = rounding_errors(rows)
        are_right = [is_near(value, rows[i].value, errors[i]) for value, i in zip(numbers, blanks, strict=True)]
        right, count = sum(are_right), len(blanks)
        verdict = ngettext(
            "{right} of {count} blank is right.", "{right} of {count} blanks are right.", count, right=right
        )
        if right < count:
            first_wrong = rows[blanks[are_right.index(False)]]
            hint = _("Work it out: {calculation}.", calculation=describe_calculation(rows, first_wrong))
            verdict = f"{verdict} {hint}"
        return ReplyGrade(right == count, verdict, truth | {"are_right": are_right})

    def tally_key(self, reply: str) -> str | None:
        numbers = parse_reply_numbers(reply, reply.count(SEPARATOR) + 1)
        return SEPARATOR.join(f"{value:.6g}" for value in numbers) if numbers and len(numbers) <= MAX_BLANKS else None

    def _rows(self, context: QuantityContext) -> list[WorkedExampleRow]:
        return work_out(self.worked_example, context.replace(self.change))

    def _blank_indices(self, rows: list[WorkedExampleRow]) -> list[int]:
        computed = [i for i, row in enumerate(rows) if not row.is_given]
        return {"none": [], "one": computed[-1:], "all": computed}[self.blanks]


def is_near(value: float, truth: float, rounding_error: float) -> bool:
    """Return whether a reply's number is right, allowing for arithmetic with the digits shown."""
    return bool(abs(value - truth) <= max(RELATIVE_TOLERANCE * abs(truth), ABSOLUTE_TOLERANCE, rounding_error))


def parse_fill_in_blanks_question(ask: MappingWithLines, check: MappingWithLines | None) -> FillInBlanksQuestion:
    """Parse a blanks question from a lesson's blocks; LessonError where they are invalid."""
    spec = check["working"]
    if not isinstance(spec, MappingWithLines):
        raise LessonError(check.lines["working"], f"“working” is a mapping with “of” and “blanks”, got {spec!r:.60}")
    validate_mapping_fields(
        spec, {"of": str, "blanks": str, **dict.fromkeys(lesson_state_fields(), (str, int, float))}, ("of", "blanks")
    )
    if spec["of"] not in WORKED_EXAMPLES:
        raise LessonError(spec.line, f"“{spec['of']}” is no working; there are {', '.join(WORKED_EXAMPLES)}")
    if spec["blanks"] not in BLANKS:
        raise LessonError(spec.line, f"“blanks” are one of {', '.join(BLANKS)}, got {spec['blanks']!r:.60}")
    change = {name: value for name, value in spec.items() if name not in ("of", "blanks")}
    return FillInBlanksQuestion(spec["of"], spec["blanks"], change)


# kind of question -> the check that it needs, the names that its `ask` block may have besides, and what makes it
KINDS: dict[str, tuple[str, dict[str, Any], Callable[[MappingWithLines, MappingWithLines | None], Question]]] = {
    "choice": ("", {"options": ListWithLines}, parse_choice_question),
    "token": ("top_token", {"options": ListWithLines}, parse_token_question),
    "cell": ("argmax_cell", {}, parse_largest_cell_question),
    "number": ("number", {"from": float, "to": float}, parse_number_question),
    "curve": ("curve", {"from": float, "to": float, "labels": ListWithLines}, parse_curve_question),
    "blanks": ("working", {}, parse_fill_in_blanks_question),
}
CHECKS = (*filter(None, (check for check, _names, _make in KINDS.values())), *TASKS)


def parse_lesson_question(ask: MappingWithLines, check: MappingWithLines | None) -> tuple[str, Question]:
    """Parse the blocks of a step's question, and return its kind and the question.

    Raises:
        LessonError: the blocks define none.
    """
    named = [name for name in ask if name in KINDS]
    if len(named) != 1:
        raise LessonError(ask.line, f"a question is of one kind: {', '.join(KINDS)}")
    (kind,) = named
    required_check, names, make = KINDS[kind]
    kinds = {kind: str, "hides": ListWithLines, **names}
    for name, value in ask.items():
        if name not in kinds:
            raise LessonError(ask.lines[name], f"“{name}” is unknown to a {kind}; known are {', '.join(kinds)}")
        if not is_value_of_kind(value, kinds[name]):
            raise LessonError(ask.lines[name], f"“{name}” must be {format_kinds(kinds[name])}, got {value!r:.60}")
    named_checks = [name for name in check or () if name != "values"]
    if required_check and named_checks != [required_check]:
        raise LessonError(
            check.line if check else ask.line,
            f"a {kind} has the check “{required_check}”, got {', '.join(named_checks) or 'none'}",
        )
    if not required_check and named_checks:
        raise LessonError(
            check.line if check else ask.line,
            f"of a {kind} each option says when it is right: “{named_checks[0]}” has no place",
        )
    return kind, make(ask, check)


def parse_lesson_task(check: MappingWithLines) -> Task:
    """Parse the task of a step without a question.

    Raises:
        LessonError: there is no such check.
    """
    named = [name for name in check if name != "values"]
    if len(named) != 1 or named[0] not in TASKS:
        raise LessonError(
            check.line, f"without a question a step has one check of {', '.join(TASKS)}, got {', '.join(named)}"
        )
    if not isinstance(check[named[0]], MappingWithLines):
        raise LessonError(check.line, f"“{named[0]}” is a mapping, got {check[named[0]]!r:.60}")
    return TASKS[named[0]](check[named[0]])
