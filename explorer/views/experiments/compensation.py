"""Figures of compensation: contributions that grow or shrink by the interventions."""

import numpy as np

from explorer.analysis.direct_logit_attribution import (
    LogitAttribution,
    component_contribution_change,
    direct_logit_attribution,
    has_intervention_additions,
    head_contribution_change,
)
from explorer.analysis.residual import compute_norm_divisor
from explorer.architecture.residual_stream import has_final_norm, norm_input_tap
from explorer.explain.clicked_point import ClickedPoint, get_item
from explorer.explain.derivation import Derivation
from explorer.explain.notation import format_contribution, format_number, quote_token
from explorer.state.selection import Selection
from explorer.tracing.comparison import Comparison
from explorer.translations import _
from explorer.views import graph_objects as go
from explorer.views.labels import logit_label, target_and_contrast
from explorer.views.shared_plots import component_bar_data, component_keys
from explorer.views.style import figure, frame_head, head_map_axes, note_above


def head_compensation_map(comparison: Comparison, selection: Selection) -> go.Figure:
    """Draw the change of every head's contribution to the target token's logit by the interventions; row = layer.

    The colour scale ends at the largest change of a head that still contributes: an ablated head would dominate
    it.
    """
    trace, query, (token_id, contrast_id) = (
        comparison.trace,
        selection.query,
        target_and_contrast(comparison.trace, selection),
    )
    after, before = (contributions.heads for contributions in _attributions(comparison, selection))  # (L, H)
    values = after - before
    others = np.where(after == 0, 0, values)
    largest = float(np.abs(others).max()) or 1.0
    largest_index = np.unravel_index(others.argmax(), others.shape)
    fig = figure(
        go.Heatmap(
            z=values,
            zmin=-largest,
            zmax=largest,
            autocolorscale=True,
            text=[[format_contribution(value) for value in row] for row in values],
            customdata=np.stack((before, after), axis=-1),
            texttemplate="%{text}" if values.shape[1] <= 12 else None,
            hovertemplate=_(
                "layer %{y} head %{x}<br>adds %{customdata[1]:.4f}, unchanged %{customdata[0]:.4f}<br>%{z:+.4f}"
                "<extra></extra>"
            ),
            xgap=1,
            ygap=1,
            colorbar={"title": {"text": _("adds more, or less"), "side": "right"}},
        ),
        alt=_(
            "By how much more or less {heads} heads add to {logit} after {token} than in the unchanged run: of those "
            "that still add anything most gained {gain}, layer {layer} head {head}.",
            heads=values.size,
            logit=logit_label(trace, token_id, contrast_id),
            token=quote_token(trace.tokens[query]),
            gain=format_number(others[largest_index]),
            layer=largest_index[0],
            head=largest_index[1],
        ),
        **head_map_axes(),
    )
    layer, head = selection.layer, selection.head
    return frame_head(fig, layer, head)


def component_compensation_bars(comparison: Comparison, selection: Selection) -> go.Figure:
    """Draw the change of every component's contribution to the target token's logit; the bars add up to its change."""
    trace, query, (token_id, contrast_id) = (
        comparison.trace,
        selection.query,
        target_and_contrast(comparison.trace, selection),
    )
    attributions, has_additions = _attributions(comparison, selection), has_intervention_additions(trace)
    bars = list(
        zip(
            *(
                component_bar_data(trace, hover_texts, include_interventions=has_additions)
                for hover_texts in attributions
            ),
            strict=True,
        )
    )
    names, _values, colours, descriptions, layers = zip(*(after for after, _before in bars), strict=True)
    after, before = np.array([[bar[1] for bar in pair] for pair in bars]).T
    values, change = after - before, attributions[0].logit - attributions[1].logit
    largest_index = int(values.argmax())
    hover_texts = [
        _(
            "{part}: adds {after}, unchanged {before}<br>{change}",
            part=description,
            after=format_number(a),
            before=format_number(b),
            change=format_number(a - b),
        )
        for description, a, b in zip(descriptions, after, before, strict=True)
    ]
    return figure(
        go.Bar(
            x=np.arange(len(values)),
            y=values,
            marker={"color": colours},
            text=hover_texts,
            textposition="none",
            customdata=[selection.layer if bar_layer is None else bar_layer for bar_layer in layers],
            hovertemplate="%{text}<extra></extra>",
        ),
        alt=_(
            "By how much more or less {count} parts add to {logit} after {token} than in the unchanged run, {change} "
            "in sum: {part} gained most, {gain}.",
            count=len(values),
            logit=logit_label(trace, token_id, contrast_id),
            token=quote_token(trace.tokens[query]),
            change=format_number(change),
            part=descriptions[largest_index],
            gain=format_number(values[largest_index]),
        ),
        xaxis={
            "tickvals": np.arange(len(names)),
            "ticktext": names,
            "showgrid": False,
            "title": {"text": norm_divisors_text(comparison, query)},
        },
        yaxis={"title": {"text": _("adds more, or less")}},
        annotations=note_above(_("The changes sum to {change}.", change=format_number(change))),
        hovermode="x",  # a short bar is hard to hit
    )


def norm_divisors_text(comparison: Comparison, query: int) -> str:
    """Compare the divisors of the norms in both runs."""
    config = comparison.trace.config
    if not has_final_norm(config):
        return _("each run’s norms divide by what they did in that run")
    last = norm_input_tap(config, "final_norm")
    after, before = (compute_norm_divisor(run, run[last][query], "final_norm", query) for run in comparison.runs)
    return _(
        "the final norm divides by {after}, unchanged by {before}:<br>that alone multiplies each part by {times}",
        after=format_number(after),
        before=format_number(before),
        times=format_number(before / after),
    )


def _attributions(comparison: Comparison, selection: Selection) -> list[LogitAttribution]:
    """Return the attributions of the changed and of the unchanged run."""
    token_id, contrast_id = target_and_contrast(comparison.trace, selection)
    return [direct_logit_attribution(run, selection.query, token_id, contrast_id) for run in comparison.runs]


def inspect_head_compensation(comparison: Comparison, selection: Selection, point: ClickedPoint) -> Derivation:
    """Derive the clicked head's change of contribution under the interventions."""
    return head_contribution_change(
        comparison, selection.query, *target_and_contrast(comparison.trace, selection), point.row, point.column
    )


def inspect_component_compensation(comparison: Comparison, selection: Selection, point: ClickedPoint) -> Derivation:
    """Derive the clicked component's change of contribution under the interventions."""
    component, layer = get_item(component_keys(comparison.trace), point.coordinate("item"))
    return component_contribution_change(
        comparison, selection.query, *target_and_contrast(comparison.trace, selection), component, layer
    )
