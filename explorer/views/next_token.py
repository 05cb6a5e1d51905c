"""The next token's distribution, beside the generation controls."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from explorer.analysis.next_token import NextToken
from explorer.style import MONO, RESIDUAL, SELECTED, figure, label, number, quoted

BARS = 10


def distribution(prediction: NextToken, vocabulary: Sequence[str], after: str) -> go.Figure:
    """The likeliest next tokens as bars: the probability each is drawn with, and a tick where it stood before
    temperature and top-k. The token that does come next in the text is marked, and shown wherever it ranks."""
    shown = list(prediction.top(BARS))
    if prediction.actual is not None and prediction.actual not in shown:
        shown[-1] = prediction.actual
    sampled, plain = prediction.sampled[shown], prediction.plain[shown]
    names = [f"{prediction.rank(i)}. {label(vocabulary[i], longest=12)}" for i in shown]
    places = np.arange(len(shown))
    bars = go.Bar(
        x=sampled,
        y=places,
        orientation="h",
        customdata=plain,
        hovertext=names,
        hovertemplate="%{hovertext}<br>drawn with %{x:.4f}<br>model alone %{customdata:.4f}<extra></extra>",
        showlegend=False,
    )
    actual = [place for place, i in enumerate(shown) if i == prediction.actual]
    marked = go.Bar(
        x=sampled[actual], y=actual, orientation="h", marker={"color": SELECTED}, hoverinfo="skip", showlegend=False
    )
    ticks = go.Scatter(
        x=plain,
        y=places,
        mode="markers",
        marker={"symbol": "line-ns-open", "size": 12, "color": RESIDUAL, "line": {"width": 2}},
        name="the model alone (temperature 1, all tokens)",
        hoverinfo="skip",
    )
    right = 1.3 * max(sampled.max(), plain.max())
    numbers = go.Scatter(
        x=np.full(len(shown), right),
        y=places,
        mode="text",
        text=[number(p) if p else "cut" for p in sampled],
        textposition="middle left",
        textfont={"family": MONO, "size": 12},
        hoverinfo="skip",
        showlegend=False,
    )
    return figure(
        [bars, marked, ticks, numbers],
        alt=f"Next token after {quoted(after)}: most likely {quoted(vocabulary[shown[0]])}, {number(sampled[0])}.",
        xaxis={"range": [0, right], "title": {"text": "probability"}},
        yaxis={
            "tickvals": places,
            "ticktext": names,
            "tickfont": {"family": MONO, "size": 12},
            "autorange": "reversed",
            "showgrid": False,
        },
        bargap=0.25,
        barmode="overlay",
        margin={"l": 8, "r": 8, "t": 28, "b": 8},
        legend={"font": {"size": 11}, "x": 0, "xanchor": "left"},
    )


def summary(prediction: NextToken, vocabulary: Sequence[str], after: str, position: int) -> str:
    """The distribution in a sentence or two."""
    kept = int((prediction.sampled > 0).sum())
    text = (
        f"After {quoted(after)} (position {position}): {kept:,} of {len(prediction.sampled):,} tokens can be drawn, "
        f"entropy {number(prediction.entropy)} bits."
    )
    if prediction.actual is not None:
        probability = prediction.plain[prediction.actual]
        text += (
            f" The text goes on with {quoted(vocabulary[prediction.actual])}, "
            f"rank {prediction.rank(prediction.actual):,}, probability {number(probability)}."
        )
    return text
