"""What edits changed: a head's pattern and the next token, against the same run without them."""

import textwrap

import numpy as np
import plotly.graph_objects as go

from explorer.analysis.change import largest_score, next_token_change, pattern_change, resolution, score_change
from explorer.analysis.next_token import surprisal
from explorer.explain.analysed.change import probability_in
from explorer.explain.derivation import Derivation
from explorer.explain.notation import number, quoted
from explorer.explain.point import Point
from explorer.state.errors import NoSuchPoint
from explorer.state.interventions import Shift
from explorer.state.selection import Selection
from explorer.tracing.trace import Trace
from explorer.views.style import MONO, RESIDUAL, SELECTED, figure, label, positions, token_axis

BARS = 8


def patterns(trace: Trace, layer: int, head: int, query: int | None = None, key: int | None = None) -> go.Figure:
    """Changed weights − unchanged: row = query, column = key; a frame around the chosen cell."""
    change = pattern_change(trace, layer, head)  # (T, T)
    places = positions(trace.tokens)
    none = why_none(trace, layer, head, change)
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
            f"{none or f'weights change by at most {number(np.abs(change).max())}'}."
        ),
        xaxis={**token_axis(trace.tokens, "key (looked at)", most=24), "tickangle": -60},
        yaxis={**token_axis(trace.tokens, "query (looks back)", most=24), "autorange": "reversed"},
    )
    if query is not None and key is not None:
        corners = {"x0": key - 0.5, "x1": key + 0.5, "y0": query - 0.5, "y1": query + 0.5}
        fig.add_shape(type="rect", **corners, line={"color": SELECTED, "width": 3})
    if none:
        say(fig, none)
    return fig


def why_none(trace: Trace, layer: int, head: int, change: np.ndarray) -> str:
    """Why the weights of a head, which changed by `change`, are the same in both runs; "" where they are not."""
    if not np.abs(change).max() <= resolution(trace):  # NaN is not the same either
        return ""
    if len(trace) == 1:
        return "the only token can look at nothing but itself, changed or not"
    order, taps = list(trace.values), {edit.tap for edit in trace.edits}
    if all(order.index(tap) > order.index(f"blocks.{layer}.attn.pattern") for tap in taps):
        if any(edit.tap == f"blocks.{layer}.attn.z" and edit.index in (None, head) for edit in trace.edits):
            return "the head looks where it did; what it fetches there is changed, which later layers alone can see"
        return "the change comes after these weights: only heads of later layers can look elsewhere because of it"
    if all(isinstance(edit, Shift) for edit in trace.edits) and taps == {"rope.angles"}:
        return "weights depend on how far apart tokens stand, which a shift of all of them leaves as it is"
    return f"no weight changes by as much as {trace.dtype} can tell ({number(resolution(trace))})"


def say(fig: go.Figure, text: str):
    """Words in the middle of a picture that is empty."""
    fig.add_annotation(
        text="<br>".join(textwrap.wrap(text, 34)), xref="paper", yref="paper", x=0.5, y=0.6, showarrow=False
    )


def told(value: float, limit: float, dtype: str, unit: str = "", before: str = "") -> str:
    """A difference of two runs, with `before` before its number; or that it is no more than rounding can make it."""
    if value != 0 and abs(value) <= limit:
        return f"less than {dtype} can tell ({number(limit)}{unit})"
    return f"{before}{number(value)}{unit}"


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
            "title": {"text": f"probability; {told_moved(trace, change.moved)} of it moved"},
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


def inspect_next_token(trace: Trace, selection: Selection, point: Point) -> Derivation:
    shown = next_token_change(trace, selection.query).top(BARS)
    if point.row >= len(shown):
        raise NoSuchPoint(f"there is no bar {point.row}")
    return probability_in(trace, selection.query, int(shown[point.row]), changed=point.of("curve") == 1)


def words(trace: Trace) -> str:
    """What was changed, as in "positions shifted by 5; head 1 of layer 2 silenced"."""
    return "; ".join(edit.words(trace.config) for edit in trace.edits)


def told_moved(trace: Trace, share: float) -> str:
    return told(100 * share, 100 * resolution(trace), trace.dtype, "%")


def effect(trace: Trace, selection: Selection) -> str:
    """What was changed and what came of it, in two lines."""
    layer, head = selection.layer, selection.head
    limit, weights = resolution(trace), np.abs(pattern_change(trace, layer, head)).max()
    limit_of_scores = limit * largest_score(trace, layer, head)
    scores = told(score_change(trace, layer, head), limit_of_scores, trace.dtype, before="at most ")
    return (
        f"{words(trace)}: the scores of layer {layer} head {head} change by {scores}, its weights by "
        f"{told(weights, limit, trace.dtype)};\n{outcome(trace, selection.query)}"
    )


def outcome(trace: Trace, query: int) -> str:
    """What came of a change for the next token after a query, and for the whole text."""
    moved = next_token_change(trace, query).moved
    text = (
        f"after {quoted(trace.tokens[query])} ({query}) {told_moved(trace, moved)} of the probability moves to other "
        "tokens"
    )
    if len(trace) > 1:
        before, after = (np.nanmean(surprisal(run)) for run in (trace.baseline, trace))
        text += f"; the text's mean surprisal is {number(after)} bits a token, {number(before)} unchanged"
    return text
