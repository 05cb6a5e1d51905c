"""What edits changed: a head's pattern and the next token, against the same run without them."""

import numpy as np
import plotly.graph_objects as go

from explorer.analysis.change import next_token_change, pattern_change, score_change
from explorer.analysis.next_token import surprisal
from explorer.selection import Selection
from explorer.style import MONO, RESIDUAL, SELECTED, figure, label, number, positions, quoted, token_axis
from explorer.trace import Trace

BARS = 8


def patterns(trace: Trace, layer: int, head: int, query: int | None = None, key: int | None = None) -> go.Figure:
    """Changed weights − unchanged: row = query, column = key; a frame around the chosen cell."""
    change = pattern_change(trace, layer, head)  # (T, T)
    places = positions(trace.tokens)
    fig = figure(
        go.Heatmap(
            x=places,
            y=places,
            z=np.where(np.tri(len(trace), dtype=bool), change, np.nan),
            zmin=-1,
            zmax=1,
            autocolorscale=True,
            hovertemplate="query %{y} → key %{x}<br>weight %{z:+.3g}<extra></extra>",
            hoverongaps=False,
            colorbar={"title": {"text": "changed − unchanged weight", "side": "right"}},
        ),
        alt=(
            f"What {words(trace)} did to the pattern of layer {layer} head {head}: "
            f"weights change by at most {number(np.abs(change).max())}."
        ),
        xaxis={**token_axis(trace.tokens, "key (looked at)", most=24), "tickangle": -60},
        yaxis={**token_axis(trace.tokens, "query (looks back)", most=24), "autorange": "reversed"},
    )
    if query is not None and key is not None:
        corners = {"x0": key - 0.5, "x1": key + 0.5, "y0": query - 0.5, "y1": query + 0.5}
        fig.add_shape(type="rect", **corners, line={"color": SELECTED, "width": 3})
    return fig


def next_tokens(trace: Trace, position: int) -> go.Figure:
    """The tokens likeliest after a position in either run, a bar for each run."""
    change = next_token_change(trace, position)
    shown = change.top(BARS)
    names = [label(trace.vocabulary[i], longest=12) for i in shown]
    places = np.arange(len(shown))

    def bars(name: str, values: np.ndarray, **marker) -> go.Bar:
        return go.Bar(
            x=values[shown],
            y=places,
            orientation="h",
            name=name,
            marker=marker,
            text=[number(p) for p in values[shown]],
            textposition="outside",
            cliponaxis=False,
            hovertext=names,
            hovertemplate=f"%{{hovertext}}<br>{name} %{{x:.4f}}<extra></extra>",
        )

    runs = {"unchanged": change.before, "changed": change.after}
    likeliest = (f"{run} {quoted(trace.vocabulary[p.argmax()])}, {number(p.max())}" for run, p in runs.items())
    return figure(
        [bars("unchanged", change.before, color=RESIDUAL), bars("changed", change.after)],
        alt=f"Next token after {quoted(trace.tokens[position])}, likeliest {'; '.join(likeliest)}.",
        xaxis={
            "range": [0, 1.2 * max(change.before[shown].max(), change.after[shown].max())],
            "title": {"text": f"probability; {number(100 * change.moved)}% of it moved"},
        },
        yaxis={
            "tickvals": places,
            "ticktext": names,
            "tickfont": {"family": MONO, "size": 12},
            "autorange": "reversed",
            "showgrid": False,
        },
        bargap=0.2,
        legend={"traceorder": "normal"},
    )


def words(trace: Trace) -> str:
    """What was changed, as in "positions shifted by 5; head 1 of layer 2 silenced"."""
    return "; ".join(edit.words(trace.config) for edit in trace.edits)


def effect(trace: Trace, selection: Selection) -> str:
    """What was changed and what came of it, in two lines."""
    layer, head = selection.layer, selection.head
    scores, weights = score_change(trace, layer, head), np.abs(pattern_change(trace, layer, head)).max()
    return (
        f"{words(trace)}: the scores of layer {layer} head {head} change by at most {number(scores)}, "
        f"its weights by {number(weights)};\n{outcome(trace, selection.query)}"
    )


def outcome(trace: Trace, query: int) -> str:
    """What came of a change for the next token after a query, and for the whole text."""
    moved = next_token_change(trace, query).moved
    text = (
        f"after {quoted(trace.tokens[query])} ({query}) {number(100 * moved)}% of the probability moves to other tokens"
    )
    if len(trace) > 1:
        before, after = (np.nanmean(surprisal(run)) for run in (trace.baseline, trace))
        text += f"; the text's mean surprisal is {number(after)} bits a token, {number(before)} unchanged"
    return text
