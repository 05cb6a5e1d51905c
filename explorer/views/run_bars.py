"""Next tokens of two runs as bars, a set of bars a run."""

from typing import Any

import numpy as np

from explorer.explain.notation import number
from explorer.views import graph_objects as go
from explorer.views.style import MONO


def run_bars(run: str, probabilities: np.ndarray, tokens: list[str], **marker: Any) -> go.Bar:
    """A run's bars.

    Args:
        run: its name.
        probabilities: (n,) of the tokens.
        tokens: their texts, from the top.
        marker: plotly's settings of the bars.
    """
    return go.Bar(
        x=probabilities,
        y=np.arange(len(tokens)),
        orientation="h",
        name=run,
        marker=marker,
        text=[number(p) for p in probabilities],
        textposition="outside",
        cliponaxis=False,
        hovertext=tokens,
        hovertemplate=f"%{{hovertext}}<br>{run} %{{x:.4f}}<extra></extra>",
    )


def run_axis(tokens: list[str]) -> dict[str, Any]:
    """Settings of the axis along which the tokens stand."""
    return {
        "tickvals": np.arange(len(tokens)),
        "ticktext": tokens,
        "tickfont": {"family": MONO, "size": 12},
        "autorange": "reversed",
        "showgrid": False,
    }
