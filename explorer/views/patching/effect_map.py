"""A map of effects: what each node of a part carries of the way from one answer to the other."""

from collections.abc import Sequence

import numpy as np

from explorer.explain.notation import added, number
from explorer.language import N_, _
from explorer.state.selection import Selection
from explorer.tracing.patching_question import BY_POSITION
from explorer.views import graph_objects as go
from explorer.views.change import say
from explorer.views.patching.two_prompts import TwoPrompts
from explorer.views.style import RESIDUAL, SELECTED, figure, positions, token_axis

DIRECTION = {"denoise": N_("clean into corrupted"), "noise": N_("corrupted into clean")}


def effect_map(
    two: TwoPrompts,
    part: str,
    values: np.ndarray,
    chosen: tuple[int, int] | None,
    words: str,
    texts: Sequence[Sequence[str]] | None = None,
    direction: str = "denoise",
) -> go.Figure:
    """Effects (L, P) of a part's nodes: row = layer, column = position or head; a frame around the chosen cell.

    Args:
        words: what they are of, for the text alternative.
        texts: of each cell the intervention that puts it in, for a click.
        direction: into which run it is put then.
    """
    by_position = part in BY_POSITION
    finite = np.isfinite(values)
    largest = float(np.abs(values[finite]).max()) if finite.any() else 0.0
    hover = (
        _("layer %{y}, position %{x}<br>effect %{z:+.3g}<extra></extra>")
        if by_position
        else _("layer %{y} head %{x}<br>effect %{z:+.3g}<extra></extra>")
    )
    x = {"x": positions(two.tokens)} if by_position else {}
    most = np.unravel_index(np.nan_to_num(np.abs(values)).argmax(), values.shape)
    fig = figure(
        go.Heatmap(
            **x,
            z=values,
            zmin=-(largest or 1),
            zmax=largest or 1,
            autocolorscale=True,
            text=[[added(value) if np.isfinite(value) else "" for value in row] for row in values],
            texttemplate="%{text}" if values.shape[1] <= 12 else None,
            hovertemplate=hover,
            hoverongaps=False,
            xgap=1,
            ygap=1,
            colorbar={"title": {"text": _("effect"), "side": "right"}},
        ),
        alt=_(
            "{words}: the largest effect is {effect}, of layer {layer}, column {column}.",
            words=words,
            effect=number(values[most]) if finite.any() else _("not defined"),
            layer=most[0],
            column=most[1],
        ),
        xaxis={**token_axis(two.tokens, _("token of the clean prompt"), most=24), "tickangle": -60}
        if by_position
        else {"title": {"text": _("head")}, "dtick": 1, "showgrid": False},
        yaxis={"title": {"text": _("layer")}, "dtick": 1, "showgrid": False, "autorange": "reversed"},
    )
    if chosen and chosen[1] < values.shape[1]:
        row, column = chosen
        corners = {"x0": column - 0.5, "x1": column + 0.5, "y0": row - 0.5, "y1": row + 0.5}
        fig.add_shape(type="rect", **corners, line={"color": SELECTED, "width": 3})
    if not finite.any():
        say(fig, nothing_to_explain())
    elif texts is not None:
        fig.changes(texts, two.patched_run(direction), adds=False, looks_from=two.answer_in_a)
    return _of_clean(fig, two, np.isnan(values).all(axis=0) & finite.any()) if by_position else fig


def _of_clean(fig: go.Figure, two: TwoPrompts, untouched: np.ndarray) -> go.Figure:
    """A picture over the positions of the clean prompt, which is not A's always; what no value goes over to is said."""
    for at in np.flatnonzero(untouched):
        fig.add_vrect(at - 0.5, at + 0.5, fillcolor=RESIDUAL, opacity=0.3, line={"width": 0})
        fig.add_annotation(
            text=_("not patched"), x=int(at), y=0.5, yref="paper", textangle=-90, showarrow=False, font={"size": 11}
        )
    return fig.note(of=two.clean_is)


def chosen_cell(two: TwoPrompts, part: str, selection: Selection) -> tuple[int, int] | None:
    """The cell of what is chosen; None where heads share their keys and values, as the chosen one has no cell alone."""
    if part in BY_POSITION:
        return selection.layer, two.in_clean(selection.key)
    shared = part in ("attn.k", "attn.v") and two.clean.config.kv_heads != two.clean.config.num_heads
    return None if shared else (selection.layer, selection.head)


def nothing_to_explain() -> str:
    return _("clean and corrupted run measure the same: there is no effect to share out")
