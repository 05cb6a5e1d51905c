"""A heatmap of patching effects, and the cell of the selection."""

from collections.abc import Sequence

import numpy as np

from explorer.explain.notation import format_contribution, format_number
from explorer.state.selection import Selection
from explorer.tracing.patching.experiment import BY_POSITION
from explorer.translations import N_, _
from explorer.views import graph_objects as go
from explorer.views.intervention_effects import annotate_empty
from explorer.views.patching.prompt_pair import PromptPairContext
from explorer.views.style import RESIDUAL, SELECTED, figure, positions, token_axis

DIRECTION = {"denoise": N_("clean into corrupted"), "noise": N_("corrupted into clean")}


def effect_map(
    prompt_pair: PromptPairContext,
    component: str,
    values: np.ndarray,
    chosen_index: tuple[int, int] | None,
    title: str,
    texts: Sequence[Sequence[str]] | None = None,
    direction: str = "denoise",
) -> go.Figure:
    """Draw the effects (L, P) of patching a component: row = layer, column = position or head; the chosen cell framed.

    Args:
        title: what the effects are, for the alternative text.
        texts: of each cell the intervention that patches it, for a click.
        direction: decides into which run the click patches.
    """
    by_position = component in BY_POSITION
    finite = np.isfinite(values)
    largest = float(np.abs(values[finite]).max()) if finite.any() else 0.0
    hover = (
        _("layer %{y}, position %{x}<br>effect %{z:+.3g}<extra></extra>")
        if by_position
        else _("layer %{y} head %{x}<br>effect %{z:+.3g}<extra></extra>")
    )
    x = {"x": positions(prompt_pair.tokens)} if by_position else {}
    max_effect = np.unravel_index(np.nan_to_num(np.abs(values)).argmax(), values.shape)
    fig = figure(
        go.Heatmap(
            **x,
            z=values,
            zmin=-(largest or 1),
            zmax=largest or 1,
            autocolorscale=True,
            text=[[format_contribution(value) if np.isfinite(value) else "" for value in row] for row in values],
            texttemplate="%{text}" if values.shape[1] <= 12 else None,
            hovertemplate=hover,
            hoverongaps=False,
            xgap=1,
            ygap=1,
            colorbar={"title": {"text": _("effect"), "side": "right"}},
        ),
        alt=_(
            "{words}: the largest effect is {effect}, of layer {layer}, column {column}.",
            words=title,
            effect=format_number(values[max_effect]) if finite.any() else _("not defined"),
            layer=max_effect[0],
            column=max_effect[1],
        ),
        xaxis={**token_axis(prompt_pair.tokens, _("token of the clean prompt"), max_labels=24), "tickangle": -60}
        if by_position
        else {"title": {"text": _("head")}, "dtick": 1, "showgrid": False},
        yaxis={"title": {"text": _("layer")}, "dtick": 1, "showgrid": False, "autorange": "reversed"},
    )
    if chosen_index and chosen_index[1] < values.shape[1]:
        row, column = chosen_index
        corners = {"x0": column - 0.5, "x1": column + 0.5, "y0": row - 0.5, "y1": row + 0.5}
        fig.add_shape(type="rect", **corners, line={"color": SELECTED, "width": 3})
    if not finite.any():
        annotate_empty(fig, no_effect_message())
    elif texts is not None:
        fig.set_click_interventions(
            texts, prompt_pair.patched_run_field(direction), adds=False, query_in_a=prompt_pair.answer_in_a
        )
    return _use_clean_axis(fig, prompt_pair, np.isnan(values).all(axis=0) & finite.any()) if by_position else fig


def _use_clean_axis(fig: go.Figure, prompt_pair: PromptPairContext, is_unpatched: np.ndarray) -> go.Figure:
    """Return a figure whose axis has the positions of the clean prompt, which need not be A's.

    Positions that nothing is patched to are listed.
    """
    for position in np.flatnonzero(is_unpatched):
        fig.add_vrect(position - 0.5, position + 0.5, fillcolor=RESIDUAL, opacity=0.3, line={"width": 0})
        fig.add_annotation(
            text=_("not patched"),
            x=int(position),
            y=0.5,
            yref="paper",
            textangle=-90,
            showarrow=False,
            font={"size": 11},
        )
    return fig.set_meta(of=prompt_pair.clean_run)


def chosen_cell(prompt_pair: PromptPairContext, component: str, selection: Selection) -> tuple[int, int] | None:
    """Return the chosen cell; None if heads share their keys and values, as the chosen one has no cell of its own."""
    if component in BY_POSITION:
        return selection.layer, prompt_pair.to_clean_position(selection.key)
    shared = (
        component in ("attn.k", "attn.v") and prompt_pair.clean.config.kv_heads != prompt_pair.clean.config.num_heads
    )
    return None if shared else (selection.layer, selection.head)


def no_effect_message() -> str:
    """Return the message for two runs with equal metrics."""
    return _("clean and corrupted run measure the same: there is no effect to share out")
