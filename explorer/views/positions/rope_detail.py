"""The RoPE view's closer looks: what each pair adds to a score, the score by distance, and how fast pairs turn."""

import numpy as np

from explorer.analysis.rope import frequencies, score_by_distance, score_by_pair
from explorer.architecture.attention import angles_of, divisor
from explorer.explain.notation import number, quoted
from explorer.language import _
from explorer.tracing.trace import Trace
from explorer.views import graph_objects as go
from explorer.views.score_parts import score_parts
from explorer.views.style import ATTENTION, RESIDUAL, SELECTED, figure


def by_pair(trace: Trace, layer: int, head: int, query: int, key: int) -> go.Figure:
    """|q||k| cos(φ + Δω) / √d as a bar a pair; they add up to the score of the chosen cell."""
    parts = score_by_pair(trace, layer, head, query, key)
    score = trace[f"blocks.{layer}.attn.scores"][head, query, key]
    return score_parts(
        parts,
        score,
        hover=_("pair %{x}<br>adds %{y:.4f}<extra></extra>"),
        alt=_(
            "{pairs} pairs add up to the score {score} of {key}.",
            pairs=len(parts),
            score=number(score),
            key=quoted(trace.tokens[key]),
        ),
        title={"text": _("pair of dimensions (fast → slow)")},
        dtick=1,
    )


def by_distance(trace: Trace, layer: int, head: int, query: int, key: int) -> go.Figure:
    """The score of the chosen q and k if they stood further apart or closer, their content held fixed."""
    shown = np.arange(trace.config.context_length if len(trace) > 1 else 1)
    scores = score_by_distance(trace, layer, head, query, key, shown)
    here = query - key
    return figure(
        [
            go.Scatter(
                x=shown,
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
            query=quoted(trace.tokens[query]),
            key=quoted(trace.tokens[key]),
            score=number(scores[here]),
            distance=here,
            most=number(scores.max()),
            furthest=scores.argmax(),
        ),
        xaxis={"title": {"text": _("distance in tokens")}, "showgrid": False},
        yaxis={"title": {"text": _("score q·k / {divisor}", divisor=divisor(trace.config))}},
    )


def wavelengths(trace: Trace, layer: int = 0) -> go.Figure:
    """How many positions each pair takes for a whole turn, 2π / ω, against the context length."""
    speeds = np.abs(frequencies(trace[angles_of(trace.config, layer)]))
    turn = 2 * np.pi / np.where(speeds > 0, speeds, np.nan)  # a pair that was kept from turning has no bar
    context = trace.config.context_length
    fig = figure(
        go.Bar(
            x=np.arange(len(turn)),
            y=turn,
            marker={"color": RESIDUAL},
            hovertemplate=_("pair %{x}<br>a turn in %{y:.4g} positions<extra></extra>"),
        ),
        alt=_(
            "{turning} of {pairs} pairs make a whole turn within the context of {context}.",
            turning=int((turn <= context).sum()),
            pairs=len(turn),
            context=context,
        )
        if len(trace) > 1
        else _("One token alone shows no speed: type two."),
        xaxis={"title": {"text": _("pair of dimensions (fast → slow)")}, "showgrid": False, "dtick": 1},
        yaxis={"title": {"text": _("positions a turn")}, "type": "log", "dtick": 1},
        bargap=0.2,
    )
    fig.add_hline(context, line={"color": SELECTED, "dash": "dot"})
    said = _("context {tokens}", tokens=context)
    fig.add_annotation(text=said, xref="paper", x=0, y=np.log10(context), yshift=8, showarrow=False, xanchor="left")
    return fig
