"""Effects of interventions on a head's pattern and the next token, against the same run without them."""

import textwrap

import numpy as np

from explorer.analysis.intervention_effects import (
    comparison_rounding_threshold,
    largest_score,
    largest_score_change,
    next_token_change,
    next_token_probability,
    pattern_change,
)
from explorer.analysis.next_token import surprisal
from explorer.errors import PointNotFoundError
from explorer.explain.derivation import ClickedPoint, Derivation
from explorer.explain.notation import format_number, quote_token, token_formatter
from explorer.interventions import PositionShift, sort_interventions
from explorer.state.selection import Selection
from explorer.tracing.comparison import Comparison
from explorer.tracing.trace import Trace
from explorer.translations import _, translate
from explorer.views import graph_objects as go
from explorer.views.shared_plots import bar_token_axis, probability_bars
from explorer.views.style import RESIDUAL, SELECTED, figure, label, position_labels, token_axis

BARS = 8


def pattern_change_map(
    comparison: Comparison, layer: int, head: int, query: int | None = None, key: int | None = None
) -> go.Figure:
    """Draw changed − unchanged attention weights: row = query, column = key; the chosen cell framed."""
    trace = comparison.trace
    change = pattern_change(comparison, layer, head)  # (T, T)
    labels = position_labels(trace.tokens)
    reason = unchanged_attention_reason(comparison, layer, head, change)
    fig = figure(
        go.Heatmap(
            x=labels,
            y=labels,
            z=np.where(np.tri(len(trace), dtype=bool), change, np.nan),
            zmin=-1,
            zmax=1,
            hovertemplate=_("query %{y} → key %{x}<br>weight %{z:+.3g}<extra></extra>"),
            hoverongaps=False,
            colorbar={"title": {"text": _("changed − unchanged weight"), "side": "right"}},
        ),
        alt=_(
            "What {changes} did to the pattern of layer {layer} head {head}: {outcome}.",
            changes=describe_interventions(comparison.trace),
            layer=layer,
            head=head,
            outcome=reason or _("weights change by at most {most}", most=format_number(np.abs(change).max())),
        ),
        xaxis={**token_axis(trace.tokens, _("key (looked at)"), max_labels=32)},
        yaxis={**token_axis(trace.tokens, _("query (looks back)"), max_labels=32), "autorange": "reversed"},
    )
    if query is not None and key is not None:
        corners = {"x0": key - 0.5, "x1": key + 0.5, "y0": query - 0.5, "y1": query + 0.5}
        fig.add_shape(type="rect", **corners, line={"color": SELECTED, "width": 3})
    if reason:
        annotate_empty(fig, reason)
    return fig


def unchanged_attention_reason(comparison: Comparison, layer: int, head: int, change: np.ndarray) -> str:
    """Return why a head's attention weights are the same in both runs; "" if they differ.

    Args:
        change: the difference of the weights, (T, T).
    """
    trace = comparison.trace
    if not np.abs(change).max() <= comparison_rounding_threshold(comparison):  # NaN is not the same either
        return ""
    if len(trace) == 1:
        return _("the only token can look at nothing but itself, changed or not")
    tap_order = list(trace.values)
    taps = {intervention.tap for intervention in sort_interventions(trace.edits, trace.config)}
    if all(tap_order.index(tap) > tap_order.index(f"blocks.{layer}.attn.pattern") for tap in taps):
        if any(
            intervention.tap == f"blocks.{layer}.attn.z" and intervention.index in (None, head)
            for intervention in trace.edits
        ):
            return _("the head looks where it did; what it fetches there is changed, which later layers alone can see")
        return _("the change comes after these weights: only heads of later layers can look elsewhere because of it")
    if all(isinstance(intervention, PositionShift) for intervention in trace.edits) and taps == {"rope.angles"}:
        return _("weights depend on how far apart tokens stand, which a shift of all of them leaves as it is")
    limit = format_number(comparison_rounding_threshold(comparison))
    return _("no weight changes by as much as {dtype} can tell ({limit})", dtype=trace.dtype, limit=limit)


def annotate_empty(fig: go.Figure, text: str):
    """Write a text in the middle of an empty figure."""
    fig.add_annotation(
        text="<br>".join(textwrap.wrap(text, 34)), xref="paper", yref="paper", x=0.5, y=0.6, showarrow=False
    )


def format_difference(value: float, limit: float, dtype: str, unit: str = "{value}") -> str:
    """Format the difference of two runs, or say that it is within rounding error.

    Args:
        unit: template of a value with its unit, translated on use.
    """
    if value != 0 and abs(value) <= limit:
        return _("less than {dtype} can tell ({limit})", dtype=dtype, limit=translate(unit, value=format_number(limit)))
    return translate(unit, value=format_number(value))


def format_largest_difference(value: float, limit: float, dtype: str) -> str:
    """Format the largest of several differences, as "at most x" or as within rounding error."""
    text = format_difference(value, limit, dtype)
    return text if value != 0 and abs(value) <= limit else _("at most {value}", value=text)


def next_token_change_bars(comparison: Comparison, position: int) -> go.Figure:
    """Draw the most probable tokens after a position in either run, a bar for each run."""
    trace = comparison.trace
    change = next_token_change(comparison, position)
    token_ids = change.top(BARS)
    names = [label(trace.vocabulary[i], max_chars=12) for i in token_ids]

    top_before, top_after = (quote_token(trace.vocabulary[p.argmax()]) for p in (change.before, change.after))
    return figure(
        [
            probability_bars(_("unchanged"), change.before[token_ids], names, color=RESIDUAL),
            probability_bars(_("changed"), change.after[token_ids], names),
        ],
        alt=_(
            "Next token after {token}, likeliest unchanged {likeliest}, {before}; changed {then}, {after}.",
            token=quote_token(trace.tokens[position]),
            likeliest=top_before,
            before=format_number(change.before.max()),
            then=top_after,
            after=format_number(change.after.max()),
        ),
        xaxis={
            "range": [0, 1.2 * max(change.before[token_ids].max(), change.after[token_ids].max())],
            "title": {
                "text": _(
                    "probability; {share} moved between tokens",
                    share=format_probability_moved(comparison, change.total_variation),
                )
            },
        },
        yaxis=bar_token_axis(names),
        legend={"traceorder": "normal"},
    )


def inspect_next_token_probability(comparison: Comparison, selection: Selection, point: ClickedPoint) -> Derivation:
    """Derive the clicked probability of a next token, without or with the interventions."""
    token_ids = next_token_change(comparison, selection.query).top(BARS)
    if point.row >= len(token_ids):
        raise PointNotFoundError(_("there is no bar {bar}", bar=point.row))
    return next_token_probability(
        comparison, selection.query, int(token_ids[point.row]), changed=point.coordinate("curve") == 1
    )


def describe_interventions(trace: Trace) -> str:
    """Describe the run's interventions, as in "positions shifted by 5; head 1 of layer 2 ablated"."""
    return "; ".join(intervention.describe(trace.config, token_formatter(trace)) for intervention in trace.edits)


def format_probability_moved(comparison: Comparison, share: float) -> str:
    """Format a share of moved probability in percent, or that it is rounding error."""
    return format_difference(
        100 * share, 100 * comparison_rounding_threshold(comparison), comparison.trace.dtype, "{value}%"
    )


def intervention_summary(comparison: Comparison, selection: Selection) -> str:
    """Describe the interventions and their effects in two lines."""
    layer, head = selection.layer, selection.head
    limit, weights = comparison_rounding_threshold(comparison), np.abs(pattern_change(comparison, layer, head)).max()
    limit_of_scores = limit * largest_score(comparison, layer, head)
    return _(
        "{changes}: the scores of layer {layer} head {head} change by {scores}, its weights by {weights};\n{outcome}",
        changes=describe_interventions(comparison.trace),
        layer=layer,
        head=head,
        scores=format_largest_difference(
            largest_score_change(comparison, layer, head), limit_of_scores, comparison.trace.dtype
        ),
        weights=format_difference(weights, limit, comparison.trace.dtype),
        outcome=effect_summary(comparison, selection.query),
    )


def effect_summary(comparison: Comparison, query: int) -> str:
    """Describe the effect on the next token after a query and on the whole text."""
    trace = comparison.trace
    moved = _(
        "after {token} ({position}) {share} of the probability moves to other tokens",
        token=quote_token(trace.tokens[query]),
        position=query,
        share=format_probability_moved(comparison, next_token_change(comparison, query).total_variation),
    )
    if len(trace) == 1:
        return moved
    return _(
        "{moved}; the text’s mean surprisal is {after} bits a token, {before} unchanged",
        moved=moved,
        after=format_number(np.nanmean(surprisal(trace))),
        before=format_number(np.nanmean(surprisal(comparison.other))),
    )
