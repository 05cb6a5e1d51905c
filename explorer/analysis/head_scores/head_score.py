"""A head score: a number in [0, 1] for what an attention head does."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class HeadScore:
    """A head score: a mean over the queries that count, without the first; a head's chance baseline follows from it.

    It has either `targets` or `measure`. Texts are translated on use.

    Attributes:
        name: in URLs and lessons.
        order: in lists of all scores.
        label: short name.
        description: what a head with a high score does, as in "how much it …".
        title: name of a head's score.
        formula: of the mean.
        targets: token ids (T,) -> (T, T) booleans: the keys of each query whose attention is added up. A query
            counts if it has some.
        measure: attention rows (..., T), number of visible keys (...), at least 2 -> (...) score of each query. All
            queries count.
    """

    name: str
    order: int
    label: str
    description: str
    title: str
    formula: str
    targets: Callable[[np.ndarray], np.ndarray] | None = None
    measure: Callable[[np.ndarray, np.ndarray], np.ndarray] | None = None


def repeated_keys(token_ids: np.ndarray) -> np.ndarray:
    """Return (T, T) booleans: True for the earlier positions of the query's own token."""
    query, key = np.indices((len(token_ids), len(token_ids)))
    return (token_ids[:, None] == token_ids) & (key < query)
