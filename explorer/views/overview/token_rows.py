"""Rows of tokens: of a long text the most important ones, the others folded."""

from collections.abc import Collection

import numpy as np


def fold_tokens(importance: np.ndarray, required: Collection[int], max_rows: int) -> list[range]:
    """Return ranges of positions that cover a text in order: single tokens, and folds of the others.

    Args:
        importance: (T,), of each token; the most important ones are single, as far as there are rows.
        required: positions that are single in any case.
        max_rows: number of rows, at least three more than twice the required positions.
    """
    total = len(importance)
    if total <= max_rows:
        return [range(i, i + 1) for i in range(total)]
    single = set(required)
    for position in np.argsort(-importance, kind="stable").tolist():
        if position not in single and len(make_rows(single | {position}, total)) <= max_rows:
            single.add(position)
    return make_rows(single, total)


def make_rows(single: Collection[int], total: int) -> list[range]:
    """Return a row for each single position, and one for each stretch between them."""
    rows, start = [], 0
    for position in [*sorted(single), total]:
        if start < position:
            rows.append(range(start, position))
        if position < total:
            rows.append(range(position, position + 1))
        start = position + 1
    return rows
