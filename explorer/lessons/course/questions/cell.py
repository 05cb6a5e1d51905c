"""Which cell of a small heatmap has the largest number."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from explorer.explain.notation import number, visible
from explorer.language import _
from explorer.lessons.course.blocks import Fields, Items, at, taken
from explorer.lessons.course.look import Look
from explorer.lessons.course.quantities import QUANTITY, Quantity, quantity
from explorer.lessons.course.questions.judged import BETWEEN, Judged
from explorer.state.selection import as_index

AXES = ("query", "key", "layer", "head")
MOST = 24  # cells along an axis


@dataclass(frozen=True)
class LargestCell:
    """The reply is a row and a column of the heatmap, from 0.

    Attributes:
        of: what a cell has, where `rows` and `columns` are names of the address, or arguments, that a row and a column
            each have a value of.
        row_values, column_values: those; none for all there are.
    """

    of: Quantity
    rows: str = "query"
    columns: str = "key"
    row_values: tuple[int, ...] = ()
    column_values: tuple[int, ...] = ()

    def asked(self, look: Look) -> dict[str, Any]:
        rows, columns = self._values(look)
        return {
            "kind": "cell",
            "rows": [self._named(look, self.rows, value) for value in rows],
            "columns": [self._named(look, self.columns, value) for value in columns],
            "there": [[self._is_there(row, column) for column in columns] for row in rows],
        }

    def judged(self, look: Look, reply: str | None) -> Judged | None:
        rows, columns = self._values(look)
        values = np.full((len(rows), len(columns)), np.nan)
        for i, row in enumerate(rows):
            for j, column in enumerate(columns):
                if self._is_there(row, column):
                    values[i, j] = self.of.but(self.rows, row).but(self.columns, column).at(look)
        largest = np.unravel_index(np.nanargmax(values), values.shape)
        texts = [[None if np.isnan(value) else [float(value), number(value)] for value in row] for row in values]
        truth = {"values": texts, "right": [int(i) for i in largest]}
        row = self._named(look, self.rows, rows[largest[0]])
        column = self._named(look, self.columns, columns[largest[1]])
        place = {"row": row, "column": column, "value": number(values[largest])}
        words = _("The largest is row {row}, column {column}: {value}.", **place)
        if reply is None:
            return Judged(None, words, truth)
        chosen = tuple(as_index(part) for part in reply.split(BETWEEN))
        if len(chosen) != 2 or None in chosen or any(i >= n for i, n in zip(chosen, values.shape, strict=True)):
            return None
        if np.isnan(values[chosen]):
            return None
        if chosen != largest:
            words = " ".join((_("Yours has {value}.", value=number(values[chosen])), words))
        return Judged(chosen == largest, words, truth)

    def counted(self, reply: str) -> str | None:
        chosen = [as_index(part) for part in reply.split(BETWEEN)]
        sizes = [len(values) or MOST for values in (self.row_values, self.column_values)]
        known = len(chosen) == 2 and all(i is not None and i < n for i, n in zip(chosen, sizes, strict=True))
        return BETWEEN.join(map(str, chosen)) if known else None

    def _values(self, look: Look) -> tuple[tuple[int, ...], tuple[int, ...]]:
        config, tokens = look.trace.config, len(look.trace)
        sizes = {"query": tokens, "key": tokens, "layer": config.num_layers, "head": config.num_heads}

        def there(name: str, values: tuple[int, ...]) -> tuple[int, ...]:
            return tuple(value for value in values if value < sizes[name]) or tuple(range(sizes[name]))[:MOST]

        return there(self.rows, self.row_values), there(self.columns, self.column_values)

    def _is_there(self, row: int, column: int) -> bool:
        return (self.rows, self.columns) != ("query", "key") or column <= row

    @staticmethod
    def _named(look: Look, name: str, value: int) -> str:
        return f"{visible(look.trace.tokens[value])} ({value})" if name in ("query", "key") else str(value)


def largest_cell(ask: Fields, check: Fields | None) -> LargestCell:
    """Of a lesson's blocks; LessonError where it is none."""
    given = check["argmax_cell"]
    with at(check.lines["argmax_cell"]):
        if not isinstance(given, Fields):
            raise ValueError(f"“argmax_cell” is a mapping with “of”, got {given!r:.60}")
    taken(given, {"of": QUANTITY, "rows": (str, Fields), "columns": (str, Fields)}, ("of",))
    rows, row_values = axis(given, "rows", "query")
    columns, column_values = axis(given, "columns", "key")
    return LargestCell(quantity(given["of"], given.lines["of"]), rows, columns, row_values, column_values)


def axis(given: Fields, name: str, otherwise: str) -> tuple[str, tuple[int, ...]]:
    """What a row or a column stands for: a name, or a name with the values there are."""
    value = given.get(name, otherwise)
    with at(given.lines.get(name, given.line)):
        named, values = (value, Items()) if isinstance(value, str) else next(iter(value.items()), ("", None))
        if named not in AXES:
            raise ValueError(f"“{name}” are one of {', '.join(AXES)}, got {named!r:.60}")
        if not isinstance(values, Items) or not all(as_index(one) is not None for one in values) or len(values) > MOST:
            raise ValueError(f"the values of “{named}” are a list of at most {MOST} whole numbers")
    return named, tuple(values)
