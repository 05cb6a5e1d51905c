"""The neurons of a layer that carry most."""

import numpy as np

from explorer.analysis.patching import neuron_effects, strongest
from explorer.explain.notation import number
from explorer.language import _, look_up
from explorer.state.selection import Selection
from explorer.tracing.comparison import Comparison
from explorer.views import graph_objects as go
from explorer.views.change import say
from explorer.views.patching.effect_map import DIRECTION, nothing_to_explain
from explorer.views.patching.two_prompts import two_prompts
from explorer.views.style import FEED_FORWARD, SELECTED, figure

TOP_NEURONS = 20


def strongest_neurons(runs: Comparison, selection: Selection) -> go.Figure:
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
    texts = [f"blocks.{selection.layer}.ffn.hidden.{neuron}*patch" for neuron in order]
    return fig.changes(texts, two.patched_run("denoise"), adds=False, looks_from=two.answer_in_a)
