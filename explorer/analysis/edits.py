"""What edits make of a value that the analysis works out on from there."""

import numpy as np

from explorer.tracing.trace import Trace


def as_edited(trace: Trace, name: str, x: np.ndarray) -> np.ndarray:
    """Vectors (…, N) at a place in the stream, or the logits, as the run's edits of that place multiply parts of them.

    Or a direction that is read there: a product with a multiplied vector is one with a direction multiplied likewise.
    """
    for edit in trace.edits:
        if edit.tap == name and edit.factor is not None:
            x = x.copy()
            x[..., slice(None) if edit.index is None else edit.index] *= edit.factor
    return x
