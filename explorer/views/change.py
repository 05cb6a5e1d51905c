"""What edits changed: a head's pattern and the next token, against the same run without them."""

import textwrap

import numpy as np

from explorer.analysis.change import largest_score, next_token_change, pattern_change, resolution, score_change
from explorer.analysis.next_token import surprisal
from explorer.explain.analysed.change import probability_in
from explorer.explain.derivation import Derivation
from explorer.explain.notation import number, quoted
from explorer.explain.place import as_text
from explorer.explain.point import Point
from explorer.language import _, look_up
from explorer.state.errors import NoSuchPoint
from explorer.state.interventions import Shift, in_order
from explorer.state.selection import Selection
from explorer.tracing.comparison import Comparison
from explorer.tracing.trace import Trace
from explorer.views import graph_objects as go
from explorer.views.run_bars import run_axis, run_bars
from explorer.views.style import RESIDUAL, SELECTED, figure, label, positions, token_axis

BARS = 8


def patterns(
    comparison: Comparison, layer: int, head: int, query: int | None = None, key: int | None = None
) -> go.Figure:
    """Changed weights − unchanged: row = query, column = key; a frame around the chosen cell."""
    trace = comparison.trace
    change = pattern_change(comparison, layer, head)  # (T, T)
    places = positions(trace.tokens)
    none = why_none(comparison, layer, head, change)
    fig = figure(
        go.Heatmap(
            x=places,
            y=places,
            z=np.where(np.tri(len(trace), dtype=bool), change, np.nan),
            zmin=-1,
            zmax=1,
            autocolorscale=True,
            hovertemplate=_("query %{y} → key %{x}<br>weight %{z:+.3g}<extra></extra>"),
            hoverongaps=False,
            colorbar={"title": {"text": _("changed − unchanged weight"), "side": "right"}},
        ),
        alt=_(
            "What {changes} did to the pattern of layer {layer} head {head}: {outcome}.",
            changes=words(comparison.trace),
            layer=layer,
            head=head,
            outcome=none or _("weights change by at most {most}", most=number(np.abs(change).max())),
        ),
        xaxis={**token_axis(trace.tokens, _("key (looked at)"), most=24), "tickangle": -60},
        yaxis={**token_axis(trace.tokens, _("query (looks back)"), most=24), "autorange": "reversed"},
    )
    if query is not None and key is not None:
        corners = {"x0": key - 0.5, "x1": key + 0.5, "y0": query - 0.5, "y1": query + 0.5}
        fig.add_shape(type="rect", **corners, line={"color": SELECTED, "width": 3})
    if none:
        say(fig, none)
    return fig


def why_none(comparison: Comparison, layer: int, head: int, change: np.ndarray) -> str:
    """Why the weights of a head, which changed by `change`, are the same in both runs; "" where they are not."""
    trace = comparison.trace
    if not np.abs(change).max() <= resolution(comparison):  # NaN is not the same either
        return ""
    if len(trace) == 1:
        return _("the only token can look at nothing but itself, changed or not")
    order = list(trace.values)
    taps = {edit.tap for edit in in_order(trace.edits, trace.config)}
    if all(order.index(tap) > order.index(f"blocks.{layer}.attn.pattern") for tap in taps):
        if any(edit.tap == f"blocks.{layer}.attn.z" and edit.index in (None, head) for edit in trace.edits):
            return _("the head looks where it did; what it fetches there is changed, which later layers alone can see")
        return _("the change comes after these weights: only heads of later layers can look elsewhere because of it")
    if all(isinstance(edit, Shift) for edit in trace.edits) and taps == {"rope.angles"}:
        return _("weights depend on how far apart tokens stand, which a shift of all of them leaves as it is")
    limit = number(resolution(comparison))
    return _("no weight changes by as much as {dtype} can tell ({limit})", dtype=trace.dtype, limit=limit)


def say(fig: go.Figure, text: str):
    """Words in the middle of a picture that is empty."""
    fig.add_annotation(
        text="<br>".join(textwrap.wrap(text, 34)), xref="paper", yref="paper", x=0.5, y=0.6, showarrow=False
    )


def told(value: float, limit: float, dtype: str, unit: str = "{value}") -> str:
    """A difference of two runs; or that it is no more than rounding can make it.

    Args:
        unit: template of a value with its unit, to be looked up.
    """
    if value != 0 and abs(value) <= limit:
        return _("less than {dtype} can tell ({limit})", dtype=dtype, limit=look_up(unit, value=number(limit)))
    return look_up(unit, value=number(value))


def told_most(value: float, limit: float, dtype: str) -> str:
    """The same of the largest of many."""
    said = told(value, limit, dtype)
    return said if value != 0 and abs(value) <= limit else _("at most {value}", value=said)


def next_tokens(comparison: Comparison, position: int) -> go.Figure:
    """The tokens likeliest after a position in either run, a bar for each run."""
    trace = comparison.trace
    change = next_token_change(comparison, position)
    shown = change.top(BARS)
    names = [label(trace.vocabulary[i], longest=12) for i in shown]

    likeliest, then = (quoted(trace.vocabulary[p.argmax()]) for p in (change.before, change.after))
    return figure(
        [
            run_bars(_("unchanged"), change.before[shown], names, color=RESIDUAL),
            run_bars(_("changed"), change.after[shown], names),
        ],
        alt=_(
            "Next token after {token}, likeliest unchanged {likeliest}, {before}; changed {then}, {after}.",
            token=quoted(trace.tokens[position]),
            likeliest=likeliest,
            before=number(change.before.max()),
            then=then,
            after=number(change.after.max()),
        ),
        xaxis={
            "range": [0, 1.2 * max(change.before[shown].max(), change.after[shown].max())],
            "title": {"text": _("probability; {share} of it moved", share=told_moved(comparison, change.moved))},
        },
        yaxis=run_axis(names),
        bargap=0.2,
        legend={"traceorder": "normal"},
    )


def inspect_next_token(comparison: Comparison, selection: Selection, point: Point) -> Derivation:
    shown = next_token_change(comparison, selection.query).top(BARS)
    if point.row >= len(shown):
        raise NoSuchPoint(_("there is no bar {bar}", bar=point.row))
    return probability_in(comparison, selection.query, int(shown[point.row]), changed=point.of("curve") == 1)


def words(trace: Trace) -> str:
    """What was changed, as in "positions shifted by 5; head 1 of layer 2 silenced"."""
    return "; ".join(edit.words(trace.config, as_text(trace)) for edit in trace.edits)


def told_moved(comparison: Comparison, share: float) -> str:
    return told(100 * share, 100 * resolution(comparison), comparison.trace.dtype, "{value}%")


def effect(comparison: Comparison, selection: Selection) -> str:
    """What was changed and what came of it, in two lines."""
    layer, head = selection.layer, selection.head
    limit, weights = resolution(comparison), np.abs(pattern_change(comparison, layer, head)).max()
    limit_of_scores = limit * largest_score(comparison, layer, head)
    return _(
        "{changes}: the scores of layer {layer} head {head} change by {scores}, its weights by {weights};\n{outcome}",
        changes=words(comparison.trace),
        layer=layer,
        head=head,
        scores=told_most(score_change(comparison, layer, head), limit_of_scores, comparison.trace.dtype),
        weights=told(weights, limit, comparison.trace.dtype),
        outcome=outcome(comparison, selection.query),
    )


def outcome(comparison: Comparison, query: int) -> str:
    """What came of a change for the next token after a query, and for the whole text."""
    trace = comparison.trace
    moved = _(
        "after {token} ({position}) {share} of the probability moves to other tokens",
        token=quoted(trace.tokens[query]),
        position=query,
        share=told_moved(comparison, next_token_change(comparison, query).moved),
    )
    if len(trace) == 1:
        return moved
    return _(
        "{moved}; the text's mean surprisal is {after} bits a token, {before} unchanged",
        moved=moved,
        after=number(np.nanmean(surprisal(trace))),
        before=number(np.nanmean(surprisal(comparison.other))),
    )
