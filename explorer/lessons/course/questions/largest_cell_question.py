"""Questions for the cell of a small heatmap with the largest number."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from explorer.explain.notation import escape_token, format_number
from explorer.lessons.course.evaluation_context import EvaluationContext
from explorer.lessons.course.quantities import QUANTITY_KINDS, Quantity, parse_quantity
from explorer.lessons.course.questions.question import SEPARATOR, Grade
from explorer.lessons.course.yaml_blocks import (
    ListWithLines,
    MappingWithLines,
    errors_as_lesson_errors,
    validate_fields,
)
from explorer.state.selection import parse_index
from explorer.translations import _

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

    quantity: Quantity
    rows: str = "query"
    columns: str = "key"
    row_values: tuple[int, ...] = ()
    column_values: tuple[int, ...] = ()

    def prompt_payload(self, context: EvaluationContext) -> dict[str, Any]:
        rows, columns = self._axis_values(context)
        return {
            "kind": "cell",
            "rows": [self._label(context, self.rows, value) for value in rows],
            "columns": [self._label(context, self.columns, value) for value in columns],
            "there": [[self._exists(row, column) for column in columns] for row in rows],
        }

    def grade(self, context: EvaluationContext, reply: str | None) -> Grade | None:
        rows, columns = self._axis_values(context)
        values = np.full((len(rows), len(columns)), np.nan)
        for i, row in enumerate(rows):
            for j, column in enumerate(columns):
                if self._exists(row, column):
                    values[i, j] = self.quantity.replace(self.rows, row).replace(self.columns, column).evaluate(context)
        largest = np.unravel_index(np.nanargmax(values), values.shape)
        texts = [[None if np.isnan(value) else [float(value), format_number(value)] for value in row] for row in values]
        truth = {"values": texts, "right": [int(i) for i in largest]}
        row = self._label(context, self.rows, rows[largest[0]])
        column = self._label(context, self.columns, columns[largest[1]])
        cell = {"row": row, "column": column, "value": format_number(values[largest])}
        verdict = _("The largest is row {row}, column {column}: {value}.", **cell)
        if reply is None:
            return Grade(None, verdict, truth)
        chosen = tuple(parse_index(part) for part in reply.split(SEPARATOR))
        if len(chosen) != 2 or None in chosen or any(i >= n for i, n in zip(chosen, values.shape, strict=True)):
            return None
        if np.isnan(values[chosen]):
            return None
        if chosen != largest:
            verdict = " ".join((_("Yours has {value}.", value=format_number(values[chosen])), verdict))
        return Grade(chosen == largest, verdict, truth)

    def tally_key(self, reply: str) -> str | None:
        chosen = [parse_index(part) for part in reply.split(SEPARATOR)]
        sizes = [len(values) or MAX_CELLS for values in (self.row_values, self.column_values)]
        is_valid = len(chosen) == 2 and all(i is not None and i < n for i, n in zip(chosen, sizes, strict=True))
        return SEPARATOR.join(map(str, chosen)) if is_valid else None

    def _axis_values(self, context: EvaluationContext) -> tuple[tuple[int, ...], tuple[int, ...]]:
        config, tokens = context.trace.config, len(context.trace)
        sizes = {"query": tokens, "key": tokens, "layer": config.num_layers, "head": config.num_heads}

        def existing(name: str, values: tuple[int, ...]) -> tuple[int, ...]:
            return tuple(value for value in values if value < sizes[name]) or tuple(range(sizes[name]))[:MAX_CELLS]

        return existing(self.rows, self.row_values), existing(self.columns, self.column_values)

    def _exists(self, row: int, column: int) -> bool:
        return (self.rows, self.columns) != ("query", "key") or column <= row

    @staticmethod
    def _label(context: EvaluationContext, name: str, value: int) -> str:
        return f"{escape_token(context.trace.tokens[value])} ({value})" if name in ("query", "key") else str(value)


def parse_largest_cell_question(ask: MappingWithLines, check: MappingWithLines | None) -> LargestCellQuestion:
    """Parse a largest-cell question from a lesson's blocks; LessonError where they are invalid."""
    spec = check["argmax_cell"]
    with errors_as_lesson_errors(check.lines["argmax_cell"]):
        if not isinstance(spec, MappingWithLines):
            raise ValueError(f"“argmax_cell” is a mapping with “of”, got {spec!r:.60}")
    validate_fields(
        spec, {"of": QUANTITY_KINDS, "rows": (str, MappingWithLines), "columns": (str, MappingWithLines)}, ("of",)
    )
    rows, row_values = parse_axis(spec, "rows", "query")
    columns, column_values = parse_axis(spec, "columns", "key")
    return LargestCellQuestion(parse_quantity(spec["of"], spec.lines["of"]), rows, columns, row_values, column_values)


def parse_axis(spec: MappingWithLines, name: str, default: str) -> tuple[str, tuple[int, ...]]:
    """Parse an axis of the heatmap: a name, or a name with its values."""
    value = spec.get(name, default)
    with errors_as_lesson_errors(spec.lines.get(name, spec.line)):
        axis, values = (value, ListWithLines()) if isinstance(value, str) else next(iter(value.items()), ("", None))
        if axis not in AXES:
            raise ValueError(f"“{name}” are one of {', '.join(AXES)}, got {axis!r:.60}")
        if (
            not isinstance(values, ListWithLines)
            or not all(parse_index(index) is not None for index in values)
            or len(values) > MAX_CELLS
        ):
            raise ValueError(f"the values of “{axis}” are a list of at most {MAX_CELLS} whole numbers")
    return axis, tuple(values)
