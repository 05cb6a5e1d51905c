"""A bar chart of a score as the sum of its terms."""

import numpy as np

from explorer.explain.notation import format_number
from explorer.translations import _
from explorer.views import graph_objects as go
from explorer.views.style import ATTENTION, figure


def score_term_bars(terms: np.ndarray, score: float, hover: str, alt: str, **xaxis) -> go.Figure:
    """Draw the terms (n,) as bars, with the error of their sum; `hover` is the template of their hover texts."""
    total = terms.sum()
    return figure(
        go.Bar(
            x=np.arange(len(terms)),
            y=terms,
            marker={"color": ATTENTION},
            hovertemplate=hover,
        ),
        alt=alt,
        xaxis={"showgrid": False, **xaxis},
        yaxis={
            "title": {
                "text": _(
                    "sum {total}, off by {error}", total=format_number(total), error=format_number(abs(total - score))
                )
            }
        },
        bargap=0.2,
    )
