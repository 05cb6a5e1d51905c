"""Maps of effects: what each node carries of the way from one answer to the other."""

from collections.abc import Sequence

import numpy as np

from explorer.analysis.patching import agreement, effects, neuron_effects, part_effects, strongest
from explorer.explain.notation import added, number
from explorer.language import N_, _, look_up
from explorer.state.selection import Selection
from explorer.tracing.comparison import Comparison
from explorer.tracing.donation import whole_patterns_alone
from explorer.tracing.patching_question import BY_POSITION, Receiver
from explorer.views import graph_objects as go
from explorer.views.change import say
from explorer.views.patching.two_prompts import TwoPrompts, two_prompts
from explorer.views.style import ATTENTION, FEED_FORWARD, RESIDUAL, SELECTED, figure, positions, token_axis
from explorer.views.two_runs.difference import Incomparable

TOP_NEURONS = 20
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
        fig.note(patches={"run": two.patched_run(direction), "texts": texts})
    return of_clean(fig, two, np.isnan(values).all(axis=0) & finite.any()) if by_position else fig


def of_clean(fig: go.Figure, two: TwoPrompts, untouched: np.ndarray) -> go.Figure:
    """A picture over the positions of the clean prompt, which is not A's always; what no value goes over to is said."""
    for at in np.flatnonzero(untouched):
        fig.add_vrect(at - 0.5, at + 0.5, fillcolor=RESIDUAL, opacity=0.3, line={"width": 0})
        fig.add_annotation(
            text=_("not patched"), x=int(at), y=0.5, yref="paper", textangle=-90, showarrow=False, font={"size": 11}
        )
    return fig.note(of=two.clean_is)


def nothing_to_explain() -> str:
    return _("clean and corrupted run measure the same: there is no effect to share out")


def patch_texts(two: TwoPrompts, part: str, direction: str, shape: tuple[int, int]) -> list[list[str]]:
    """Of each node the intervention that puts it in; "" where none can be."""
    layers, places = shape
    if part not in BY_POSITION:
        return [[f"blocks.{i}.{part}.{j}*patch" for j in range(places)] for i in range(layers)]
    put_at = two.question.put_at(direction)
    return [["" if at is None else f"blocks.{i}.{part}@{at}*patch" for at in put_at] for i in range(layers)]


def prompts_for(runs: Comparison, selection: Selection, part: str) -> TwoPrompts:
    """Incomparable where values of the part cannot go over between the prompts."""
    two = two_prompts(runs, selection)
    if part == "attn.pattern" and not two.question.by_position:
        raise Incomparable(whole_patterns_alone(len(two.question.clean), len(two.question.corrupted)))
    return two


def exact(runs: Comparison, selection: Selection, part: str, direction: str) -> go.Figure:
    """Every node of a part put alone from one run into the other."""
    two = prompts_for(runs, selection, part)
    values = part_effects(two.question, part, selection.metric, direction)
    words = _("{part}, {direction}", part=part, direction=look_up(DIRECTION[direction]))
    texts = patch_texts(two, part, direction, values.shape)
    return effect_map(two, part, values, _chosen(two, part, selection), words, texts, direction)


def estimated(runs: Comparison, selection: Selection, part: str) -> go.Figure:
    """The same by gradients."""
    two = prompts_for(runs, selection, part)
    values = two.question.estimate(selection.patch_direction, part, selection.metric)
    words = _("estimate of {part}, {direction}", part=part, direction=look_up(DIRECTION[selection.patch_direction]))
    return effect_map(two, part, values, _chosen(two, part, selection), words)


def beside(runs: Comparison, selection: Selection, part: str) -> go.Figure:
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


def _chosen(two: TwoPrompts, part: str, selection: Selection) -> tuple[int, int] | None:
    """The cell of what is chosen; None where heads share their keys and values, as the chosen one has no cell alone."""
    if part in BY_POSITION:
        return selection.layer, two.in_clean(selection.query)
    shared = part in ("attn.k", "attn.v") and two.clean.config.kv_heads != two.clean.config.num_heads
    return None if shared else (selection.layer, selection.head)


def _shared_head(two: TwoPrompts, part: str, head: int) -> int:
    """The chosen head, or of keys and values those it shares."""
    config = two.clean.config
    return head * config.kv_heads // config.num_heads if part in ("attn.k", "attn.v") else head


def receiver_of(two: TwoPrompts, selection: Selection) -> Receiver:
    if selection.receiver == "logits":
        return "logits"
    part = "attn.q" if selection.receiver == "q" else "attn.k"
    return selection.layer, _shared_head(two, part, selection.head), selection.receiver


def sent(runs: Comparison, selection: Selection) -> go.Figure:
    """What each head sends a receiver directly, all else frozen."""
    two = two_prompts(runs, selection)
    receiver = receiver_of(two, selection)
    measured = two.question.paths(selection.patch_direction, receiver)
    values = effects(two.question, measured, selection.metric, selection.patch_direction)
    words = _(
        "direct paths to {receiver}, {direction}",
        receiver=receiver_words(receiver),
        direction=look_up(DIRECTION[selection.patch_direction]),
    )
    fig = effect_map(two, "attn.z", values, None, words)
    if receiver != "logits" and receiver[0] == 0:
        say(fig, _("no head comes before layer 0: choose a receiver in a later layer"))
    return fig


def receiver_words(receiver: Receiver) -> str:
    if receiver == "logits":
        return _("the logits")
    return _("{name} of head {head} of layer {layer}", name=receiver[2], head=receiver[1], layer=receiver[0])


def neurons(runs: Comparison, selection: Selection) -> go.Figure:
    """The neurons of the chosen layer with the largest effects, a bar each way."""
    two = two_prompts(runs, selection)
    values = neuron_effects(two.question, selection.layer, selection.metric)  # (2, F)
    order = strongest(values, TOP_NEURONS)
    names = [str(neuron) for neuron in order]
    told, untold = _("neuron %{x}<br>effect %{y:+.3g}"), _("neuron %{x}<br>effect not defined")
    both = zip(("denoise", "noise"), np.nan_to_num(values[:, order]), (FEED_FORWARD, SELECTED), strict=True)
    fig = figure(
        [
            go.Bar(
                x=names,
                y=bars,
                customdata=order,
                name=look_up(DIRECTION[direction]),
                marker={"color": colour},
                hovertemplate=(told if np.isfinite(values).any() else untold) + "<extra></extra>",
            )
            for direction, bars, colour in both
        ],
        alt=_(
            "The {count} neurons of layer {layer} with the largest effects: first {neuron}, {effect}.",
            count=len(order),
            layer=selection.layer,
            neuron=names[0],
            effect=number(values[0, order[0]]),
        ),
        xaxis={"title": {"text": _("neuron of layer {layer}", layer=selection.layer)}, "type": "category"},
        yaxis={"title": {"text": _("effect")}},
        bargap=0.3,
    )
    if not np.isfinite(values).any():
        say(fig, nothing_to_explain())
        return fig
    return fig.note(
        patches={
            "run": two.patched_run("denoise"),
            "texts": [f"blocks.{selection.layer}.ffn.hidden.{neuron}*patch" for neuron in order],
        }
    )
