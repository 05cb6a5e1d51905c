"""Attention to the query's own position."""

import numpy as np

from explorer.analysis.head_scores.head_score import HeadScore
from explorer.translations import N_

SCORE = HeadScore(
    name="self",
    order=30,
    label=N_("self"),
    description=N_("looks at the token itself"),
    title=N_("self score"),
    formula=N_("score = mean over queries of the weight of the token itself"),
    targets=lambda token_ids: np.eye(len(token_ids), dtype=bool),
)
