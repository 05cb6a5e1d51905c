"""Bars of two runs' next-token probabilities, a set of bars for each run."""

from typing import Any

import numpy as np

from explorer.explain.notation import format_number
from explorer.views import graph_objects as go
from explorer.views.style import MONO


def probability_bars(run: str, probabilities: np.ndarray, tokens: list[str], **marker: Any) -> go.Bar:
    """Return horizontal bars of one run's next-token probabilities.

    Args:
        run: its name.
        probabilities: (n,) of the tokens.
        tokens: their texts, from the top.
        marker: Plotly's settings of the bars.
    """
    return go.Bar(
        x=probabilities,
        y=np.arange(len(tokens)),
        orientation="h",
        name=run,
        marker=marker,
        text=[format_number(p) for p in probabilities],
        textposition="outside",
        cliponaxis=False,
        hovertext=tokens,
        hovertemplate=f"%{{hovertext}}<br>{run} %{{x:.4f}}<extra></extra>",
    )


def bar_token_axis(tokens: list[str]) -> dict[str, Any]:
    """Return the settings of the axis of tokens beside horizontal bars, the first token at the top."""
    return {
        "tickvals": np.arange(len(tokens)),
        "ticktext": tokens,
        "tickfont": {"family": MONO, "size": 12},
        "autorange": "reversed",
        "showgrid": False,
    }
