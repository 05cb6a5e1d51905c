"""Attention to all earlier positions of the query's own token, over queries that have some."""

from explorer.analysis.head_scores.head_score import HeadScore, repeated_keys
from explorer.translations import N_

SCORE = HeadScore(
    name="duplicate_token",
    order=40,
    label=N_("duplicate token"),
    description=N_("looks at earlier occurrences of the same token"),
    title=N_("duplicate token score"),
    formula=N_("score = mean over queries of the weight of earlier occurrences of the same token"),
    targets=repeated_keys,
)
