"""Choosing step of the story: what temperature does to the probabilities that the next token is drawn with."""

import numpy as np

from explorer.analysis.next_token import next_token_distribution
from explorer.explain.notation import quote_token
from explorer.state.selection import Selection
from explorer.tracing.trace import Trace
from explorer.translations import N_, _
from explorer.views import graph_objects as go
from explorer.views.plots import format_percent
from explorer.views.style import ATTENTION, EMBEDDING, FEED_FORWARD, NORM, RESIDUAL, figure, label
from explorer.views.verification import verify_captured
from explorer.views.view import Panel, View

NUM_TOKENS = 5  # the likeliest, each a line
TEMPERATURES = np.linspace(0.1, 2, 39)
LINE_COLOURS = (ATTENTION, FEED_FORWARD, EMBEDDING, NORM, RESIDUAL)  # told apart by the colour-blind, too


def probabilities_by_temperature(logits: np.ndarray, temperatures: np.ndarray) -> np.ndarray:
    """Return softmax(logits / T) for each temperature T, (N, V) float64."""
    scaled = logits.astype(np.float64) / temperatures[:, None]  # (N, V)
    weights = np.exp(scaled - scaled.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


def draw(trace: Trace, query: int) -> go.Figure:
    """Draw the likeliest tokens' probabilities over the temperature."""
    ids = next_token_distribution(trace, query).top(NUM_TOKENS)
    shares = probabilities_by_temperature(trace.logits.row(query), TEMPERATURES)[:, ids]  # (N, 5)
    first = quote_token(trace.vocabulary[ids[0]])
    return figure(
        [
            go.Scatter(
                x=TEMPERATURES,
                y=shares[:, i],
                mode="lines",
                name=label(trace.vocabulary[token_id]),
                line={"color": colour, "width": 3},
                hovertemplate="%{fullData.name}<br>%{x:.2f}: %{y:.1%}<extra></extra>",
            )
            for i, (token_id, colour) in enumerate(zip(ids, LINE_COLOURS, strict=False))
        ],
        alt=_(
            "Probabilities of the {count} likeliest next tokens by temperature: {token} falls from {cold} at {low:.2g} "
            "to {hot} at {high:.2g}.",
            count=len(ids),
            token=first,
            cold=format_percent(float(shares[0, 0])),
            low=TEMPERATURES[0],
            hot=format_percent(float(shares[-1, 0])),
            high=TEMPERATURES[-1],
        ),
        xaxis={"title": {"text": _("temperature")}, "range": [0, 2.05]},
        yaxis={"range": [0, 1.02], "tickformat": ".0%", "title": {"text": _("probability")}},
    )


def formula(trace: Trace, selection: Selection) -> str:
    """Return a sentence on the likeliest token at a low and a high temperature."""
    query = selection.query
    (best,) = next_token_distribution(trace, query).top(1)
    cold, even, hot = probabilities_by_temperature(trace.logits.row(query), np.array([0.5, 1, 1.5]))[:, best]
    return _(
        "{token}: {cold} at temperature 0.5, {even} at 1, {hot} at 1.5, with all tokens kept.",
        token=quote_token(trace.vocabulary[best]),
        cold=format_percent(float(cold)),
        even=format_percent(float(even)),
        hot=format_percent(float(hot)),
    )


VIEW = View(
    name="choosing",
    title=N_("4 · Choosing"),
    group="story",
    order=40,
    description=N_(
        "A random number picks the next token; temperature says how daring. Drag temperature, watch the bars change, "
        "then press Step."
    ),
    formula=formula,
    required_taps=("logits",),
    panels=(
        Panel(
            name="temperature",
            title=N_("What does temperature do?"),
            draw=lambda trace, s: draw(trace, s.query),
            verify=verify_captured("logits"),
            no_inspection=N_("Each line is softmax(logits ÷ temperature), the bars beside it at one temperature."),
            height=400,
        ),
    ),
    numbers_view_link=lambda trace, s: (_("All stages of sampling, with their numbers"), {"view": "prediction"}),
)
