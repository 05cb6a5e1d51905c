"""Patching effects estimated by gradients (attribution patching), and the quality of the estimates."""

import numpy as np

from explorer.analysis.patching_effects import agreement, component_effects
from explorer.explain.notation import format_contribution, format_number
from explorer.state.selection import Selection
from explorer.tracing.comparison import Comparison
from explorer.tracing.patching.experiment import BY_POSITION
from explorer.translations import _, translate
from explorer.views import graph_objects as go
from explorer.views.intervention_effects import annotate_empty
from explorer.views.patching.effect_map import DIRECTION, chosen_cell, effect_map, no_effect_message
from explorer.views.patching.exact_effects import patch_texts
from explorer.views.patching.prompt_pair import PromptPairContext, require_patchable_pair
from explorer.views.style import ATTENTION, FEED_FORWARD, RESIDUAL, figure, positions


def estimated_effect_map(runs: Comparison, selection: Selection, component: str) -> go.Figure:
    """Draw the patching effects of a component, estimated by gradients."""
    prompt_pair = require_patchable_pair(runs, selection, component)
    direction = selection.option("patch_direction")
    values = prompt_pair.experiment.estimate(direction, component, selection.option("metric"))
    title = _("estimate of {part}, {direction}", part=component, direction=translate(DIRECTION[direction]))
    texts = patch_texts(prompt_pair, component, direction, values.shape)
    return effect_map(
        prompt_pair, component, values, chosen_cell(prompt_pair, component, selection), title, texts, direction
    )


def estimate_vs_exact(runs: Comparison, selection: Selection, component: str) -> go.Figure:
    """Draw estimates (y) over exact effects (x), a dot for each node; the worst are labelled."""
    prompt_pair = require_patchable_pair(runs, selection, component)
    direction, metric = selection.option("patch_direction"), selection.option("metric")
    exact = component_effects(prompt_pair.experiment, component, metric, direction)
    estimate = prompt_pair.experiment.estimate(direction, component, metric)
    fit = agreement(exact, estimate)
    layers, columns = (range(size) for size in exact.shape)
    names = [
        [_node_label(prompt_pair, layer, corner, component in BY_POSITION) for corner in columns] for layer in layers
    ]
    worst = zip(fit.worst, fit.errors, strict=True)
    error_texts = [_("{node} ({error})", node=names[i][j], error=format_contribution(error)) for (i, j), error in worst]
    is_defined = both_defined(exact, estimate).ravel()
    exact_values, estimated_values = (np.nan_to_num(effects.ravel())[is_defined] for effects in (exact, estimate))
    ends = [
        float(min(exact_values.min(), estimated_values.min())),
        float(max(exact_values.max(), estimated_values.max())),
    ]
    diagonal = go.Scatter(x=ends, y=ends, mode="lines", line={"dash": "dot", "width": 1, "color": RESIDUAL})
    dots = go.Scatter(
        x=exact_values,
        y=estimated_values,
        mode="markers",
        marker={"color": FEED_FORWARD if component == "ffn.out" else ATTENTION, "size": 7},
        text=np.ravel(names)[is_defined].tolist(),
        hovertemplate=_("%{text}<br>exact %{x:+.3g}, estimated %{y:+.3g}<extra></extra>")
        if np.isfinite(exact).any()
        else _("%{text}<br>effect not defined<extra></extra>"),
        showlegend=False,
    )
    fig = figure(
        [diagonal | {"hoverinfo": "skip", "showlegend": False}, dots],
        alt=_(
            "Estimates by gradients beside exact effects, correlation {correlation}; it errs most at {worst}.",
            correlation=format_number(fit.correlation),
            worst=", ".join(error_texts),
        ),
        xaxis={"title": {"text": _("exact effect")}},
        yaxis={"title": {"text": _("estimated effect")}},
    )
    if not np.isfinite(exact).any():
        annotate_empty(fig, no_effect_message())
        return fig
    lines = [
        _("correlation {correlation}", correlation=format_number(fit.correlation)),
        _("errs most at"),
        *error_texts,
    ]
    corner = {"xref": "paper", "yref": "paper", "x": 0.02, "y": 0.98, "xanchor": "left", "yanchor": "top"}
    return fig.add_annotation(text="<br>".join(lines), align="left", showarrow=False, **corner)


def both_defined(exact: np.ndarray, estimates: np.ndarray) -> np.ndarray:
    """Return a mask (L, P) of the nodes with both an exact effect and an estimate; all of them if none has both."""
    is_defined = np.isfinite(exact) & np.isfinite(estimates)
    return is_defined if is_defined.any() else ~is_defined


def _node_label(prompt_pair: PromptPairContext, layer: int, column: int, by_position: bool) -> str:
    if by_position:
        return _("layer {layer}, {place}", layer=layer, place=positions(prompt_pair.tokens)[column])
    return _("layer {layer} head {head}", layer=layer, head=column)
