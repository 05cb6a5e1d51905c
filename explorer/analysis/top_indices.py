"""The largest of many numbers, without sorting all of them."""

import numpy as np


def top_indices(values: np.ndarray, max_count: int) -> np.ndarray:
    """Return the indices of the `max_count` largest of `values` (N,), largest first.

    All indices if there are fewer. Ties by lower index; NaN after all others.
    """
    negated = -values
    candidates = np.arange(len(values))
    if 0 < max_count < len(values):
        threshold = np.partition(negated, max_count - 1)[max_count - 1]
        if not np.isnan(threshold):
            candidates = np.flatnonzero(negated <= threshold)
    return candidates[np.argsort(negated[candidates], kind="stable")[:max_count]]
