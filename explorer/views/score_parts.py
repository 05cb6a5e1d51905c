"""A score as the sum of its parts."""

import numpy as np

from explorer.explain.notation import number
from explorer.language import _
from explorer.views import graph_objects as go
from explorer.views.style import ATTENTION, figure


def score_parts(parts: np.ndarray, score: float, hover: str, alt: str, **xaxis) -> go.Figure:
    """A bar a part (n,), and beside them how well they add up to the score; `hover` is told of each."""
    total = parts.sum()
    return figure(
        go.Bar(
            x=np.arange(len(parts)),
            y=parts,
            marker={"color": ATTENTION},
            hovertemplate=hover,
        ),
        alt=alt,
        xaxis={"showgrid": False, **xaxis},
        yaxis={
            "title": {"text": _("sum {total}, off by {error}", total=number(total), error=number(abs(total - score)))}
        },
        bargap=0.2,
    )
