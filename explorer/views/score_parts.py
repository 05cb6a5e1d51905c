"""A score as the sum of its parts."""

import numpy as np
import plotly.graph_objects as go

from explorer.explain.notation import number
from explorer.views.style import ATTENTION, figure


def score_parts(parts: np.ndarray, score: float, part: str, alt: str, **xaxis) -> go.Figure:
    """A bar a part (n,), and beside them how well they add up to the score; `part` is what one is, as in "pair"."""
    return figure(
        go.Bar(
            x=np.arange(len(parts)),
            y=parts,
            marker={"color": ATTENTION},
            hovertemplate=f"{part} %{{x}}<br>adds %{{y:.4f}}<extra></extra>",
        ),
        alt=alt,
        xaxis={"showgrid": False, **xaxis},
        yaxis={"title": {"text": f"sum {number(parts.sum())}, off by {number(abs(parts.sum() - score))}"}},
        bargap=0.2,
    )
