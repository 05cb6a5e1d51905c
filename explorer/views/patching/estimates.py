"""The same effects estimated by gradients, and how good that is."""

import numpy as np

from explorer.analysis.patching import agreement, part_effects
from explorer.explain.notation import added, number
from explorer.language import _, look_up
from explorer.state.selection import Selection
from explorer.tracing.comparison import Comparison
from explorer.tracing.patching_question import BY_POSITION
from explorer.views import graph_objects as go
from explorer.views.change import say
from explorer.views.patching.effect_map import DIRECTION, chosen_cell, effect_map, nothing_to_explain
from explorer.views.patching.exact import patch_texts
from explorer.views.patching.two_prompts import TwoPrompts, prompts_for
from explorer.views.style import ATTENTION, FEED_FORWARD, RESIDUAL, figure, positions


def estimated_map(runs: Comparison, selection: Selection, part: str) -> go.Figure:
    """The same by gradients."""
    two = prompts_for(runs, selection, part)
    values = two.question.estimate(selection.patch_direction, part, selection.metric)
    words = _("estimate of {part}, {direction}", part=part, direction=look_up(DIRECTION[selection.patch_direction]))
    direction = selection.patch_direction
    texts = patch_texts(two, part, direction, values.shape)
    return effect_map(two, part, values, chosen_cell(two, part, selection), words, texts, direction)


def beside_exact(runs: Comparison, selection: Selection, part: str) -> go.Figure:
    """Estimates (up) over exact effects (across), a dot a node, the worst with their names."""
    two = prompts_for(runs, selection, part)
    exactly = part_effects(two.question, part, selection.metric, selection.patch_direction)
    estimate = two.question.estimate(selection.patch_direction, part, selection.metric)
    held = agreement(exactly, estimate)
    layers, places = (range(size) for size in exactly.shape)
    names = [[_node(two, layer, place, part in BY_POSITION) for place in places] for layer in layers]
    worst = zip(held.worst, held.errors, strict=True)
    errs = [_("{node} ({error})", node=names[i][j], error=added(error)) for (i, j), error in worst]
    is_defined = defined(exactly, estimate).ravel()
    across, up = (np.nan_to_num(effects.ravel())[is_defined] for effects in (exactly, estimate))
    ends = [float(min(across.min(), up.min())), float(max(across.max(), up.max()))]
    same = go.Scatter(x=ends, y=ends, mode="lines", line={"dash": "dot", "width": 1, "color": RESIDUAL})
    dots = go.Scatter(
        x=across,
        y=up,
        mode="markers",
        marker={"color": FEED_FORWARD if part == "ffn.out" else ATTENTION, "size": 7},
        text=np.ravel(names)[is_defined].tolist(),
        hovertemplate=_("%{text}<br>exact %{x:+.3g}, estimated %{y:+.3g}<extra></extra>")
        if np.isfinite(exactly).any()
        else _("%{text}<br>effect not defined<extra></extra>"),
        showlegend=False,
    )
    fig = figure(
        [same | {"hoverinfo": "skip", "showlegend": False}, dots],
        alt=_(
            "Estimates by gradients beside exact effects, correlation {correlation}; it errs most at {worst}.",
            correlation=number(held.correlation),
            worst=", ".join(errs),
        ),
        xaxis={"title": {"text": _("exact effect")}},
        yaxis={"title": {"text": _("estimated effect")}},
    )
    if not np.isfinite(exactly).any():
        say(fig, nothing_to_explain())
        return fig
    lines = [_("correlation {correlation}", correlation=number(held.correlation)), _("errs most at"), *errs]
    place = {"xref": "paper", "yref": "paper", "x": 0.02, "y": 0.98, "xanchor": "left", "yanchor": "top"}
    return fig.add_annotation(text="<br>".join(lines), align="left", showarrow=False, **place)


def defined(exact: np.ndarray, estimates: np.ndarray) -> np.ndarray:
    """Of which nodes there are both; of all, at 0, where it is said that there is no effect."""
    found = np.isfinite(exact) & np.isfinite(estimates)
    return found if found.any() else ~found


def _node(two: TwoPrompts, layer: int, place: int, by_position: bool) -> str:
    if by_position:
        return _("layer {layer}, {place}", layer=layer, place=positions(two.tokens)[place])
    return _("layer {layer} head {head}", layer=layer, head=place)
