"""Attention to the token before."""

import numpy as np

from explorer.analysis.head_scores.head_score import HeadScore
from explorer.translations import N_

SCORE = HeadScore(
    name="previous_token",
    order=10,
    label=N_("previous token"),
    description=N_("looks at the token before"),
    title=N_("previous token score"),
    formula=N_("score = mean over queries of the weight of the token before"),
    targets=lambda token_ids: np.eye(len(token_ids), k=-1, dtype=bool),
)
