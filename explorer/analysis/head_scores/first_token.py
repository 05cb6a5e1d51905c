"""Attention to the first token."""

import numpy as np

from explorer.analysis.head_scores.head_score import HeadScore
from explorer.translations import N_

SCORE = HeadScore(
    name="first_token",
    order=20,
    label=N_("first token"),
    description=N_("looks at the first token"),
    title=N_("first token score"),
    formula=N_("score = mean over queries of the weight of the first token"),
    targets=lambda token_ids: np.indices((len(token_ids), len(token_ids)))[1] == 0,
)
