"""The largest of many numbers, without sorting all of them."""

import numpy as np


def largest_first(values: np.ndarray, most: int) -> np.ndarray:
    """Indices of the `most` largest of `values` (N,), or of all where there are fewer, largest first; of equal ones the
    first of them, and after all others what is not a number."""
    negated = -values
    among = np.arange(len(values))
    if 0 < most < len(values):
        threshold = np.partition(negated, most - 1)[most - 1]
        if not np.isnan(threshold):
            among = np.flatnonzero(negated <= threshold)
    return among[np.argsort(negated[among], kind="stable")[:most]]
