"""Entropy of attention, divided by that of uniform attention, log₂ of the number of visible tokens."""

import numpy as np

from explorer.analysis.head_scores.head_score import HeadScore
from explorer.translations import N_


def normalised_entropy(rows: np.ndarray, num_visible: np.ndarray) -> np.ndarray:
    """Return the entropy of attention rows (..., T) relative to uniform attention, (...)."""
    logs = np.log2(rows, out=np.zeros_like(rows), where=rows > 0)
    return -(rows * logs).sum(-1) / np.log2(num_visible)


SCORE = HeadScore(
    name="spread",
    order=60,
    label=N_("spread"),
    description=N_("looks at many tokens evenly (entropy)"),
    title=N_("spread score"),
    formula=N_("score = mean over queries of the entropy of its weights / log₂ of how many"),
    measure=normalised_entropy,
)
