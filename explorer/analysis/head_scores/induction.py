"""Attention to what followed the query's token before (Elhage et al. 2021; Olsson et al. 2022)."""

import numpy as np

from explorer.analysis.head_scores.head_score import HeadScore, repeated_keys
from explorer.translations import N_


def keys_after_last_occurrence(token_ids: np.ndarray) -> np.ndarray:
    """Return (T, T) booleans: True for the position after the last earlier one of the query's token.

    Not where that is the query's own position, as in `model.training.evaluation`.
    """
    query, key = np.indices((len(token_ids), len(token_ids)))
    last = np.where(repeated_keys(token_ids), key, -1).max(-1, keepdims=True)  # (T, 1), -1 where the token is new
    return (last >= 0) & (key == last + 1) & (key < query)


SCORE = HeadScore(
    name="induction",
    order=50,
    label=N_("induction"),
    description=N_("looks at what followed the last earlier occurrence of the same token"),
    title=N_("induction score"),
    formula=N_(
        "score = mean over queries of the weight of what followed the last earlier occurrence of the same token"
    ),
    targets=keys_after_last_occurrence,
)
