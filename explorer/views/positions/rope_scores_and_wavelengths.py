"""Detail figures of RoPE: each pair's share of a score, scores by distance, and wavelengths."""

import numpy as np

from explorer.analysis.positions import frequencies, score_by_distance, score_by_pair
from explorer.architecture.attention import angles_tap, score_divisor_formula
from explorer.explain.notation import format_number, quote_token
from explorer.tracing.trace import Trace
from explorer.translations import _
from explorer.views import graph_objects as go
from explorer.views.score_term_bars import score_term_bars
from explorer.views.style import ATTENTION, RESIDUAL, SELECTED, figure


def score_by_pair_bars(trace: Trace, layer: int, head: int, query: int, key: int) -> go.Figure:
    """Draw |q||k| cos(φ + Δω) / √d as a bar for each pair; they add up to the score of the chosen cell."""
    terms = score_by_pair(trace, layer, head, query, key)
    score = trace[f"blocks.{layer}.attn.scores"][head, query, key]
    return score_term_bars(
        terms,
        score,
        hover=_("pair %{x}<br>adds %{y:.4f}<extra></extra>"),
        alt=_(
            "{pairs} pairs add up to the score {score} of {key}.",
            pairs=len(terms),
            score=format_number(score),
            key=quote_token(trace.tokens[key]),
        ),
        title={"text": _("pair of dimensions (fast → slow)")},
        dtick=1,
    )


def score_by_distance_plot(trace: Trace, layer: int, head: int, query: int, key: int) -> go.Figure:
    """Draw the score of the chosen q and k at other distances, with their content fixed."""
    distances = np.arange(trace.config.context_length if len(trace) > 1 else 1)
    scores = score_by_distance(trace, layer, head, query, key, distances)
    here = query - key
    return figure(
        [
            go.Scatter(
                x=distances,
                y=scores,
                mode="lines",
                line={"color": ATTENTION},
                hovertemplate=_("distance %{x}<br>score %{y:.3f}<extra></extra>"),
                showlegend=False,
            ),
            go.Scatter(
                x=[here],
                y=[scores[here]],
                mode="markers",
                marker={"color": SELECTED, "size": 10},
                hovertemplate=_("in this run: distance %{x}<br>score %{y:.3f}<extra></extra>"),
                showlegend=False,
            ),
        ],
        alt=_(
            "The score of {query} and {key} by their distance: {score} at {distance}, as in this run; at most {most} "
            "at {furthest}.",
            query=quote_token(trace.tokens[query]),
            key=quote_token(trace.tokens[key]),
            score=format_number(scores[here]),
            distance=here,
            most=format_number(scores.max()),
            furthest=scores.argmax(),
        ),
        xaxis={"title": {"text": _("distance in tokens")}, "showgrid": False},
        yaxis={"title": {"text": _("score q·k / {divisor}", divisor=score_divisor_formula(trace.config))}},
    )


def wavelengths(trace: Trace, layer: int = 0) -> go.Figure:
    """Draw each pair's wavelength in positions, 2π / ω, against the context length."""
    frequencies_by_pair = np.abs(frequencies(trace[angles_tap(trace.config, layer)]))
    periods = (
        2 * np.pi / np.where(frequencies_by_pair > 0, frequencies_by_pair, np.nan)
    )  # a pair that was kept from turning has no bar
    context = trace.config.context_length
    fig = figure(
        go.Bar(
            x=np.arange(len(periods)),
            y=periods,
            marker={"color": RESIDUAL},
            hovertemplate=_("pair %{x}<br>a turn in %{y:.4g} positions<extra></extra>"),
        ),
        alt=_(
            "{turning} of {pairs} pairs make a whole turn within the context of {context}.",
            turning=int((periods <= context).sum()),
            pairs=len(periods),
            context=context,
        )
        if len(trace) > 1
        else _("One token alone shows no speed: type two."),
        xaxis={"title": {"text": _("pair of dimensions (fast → slow)")}, "showgrid": False, "dtick": 1},
        yaxis={"title": {"text": _("positions a turn")}, "type": "log", "dtick": 1},
        bargap=0.2,
    )
    fig.add_hline(context, line={"color": SELECTED, "dash": "dot"})
    label = _("context {tokens}", tokens=context)
    fig.add_annotation(text=label, xref="paper", x=0, y=np.log10(context), yshift=8, showarrow=False, xanchor="left")
    return fig
