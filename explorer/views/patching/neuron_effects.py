"""The neurons of a layer with the largest patching effects."""

import numpy as np

from explorer.analysis.patching_effects import neuron_effects, strongest_neuron_indices
from explorer.explain.notation import format_number
from explorer.state.selection import Selection
from explorer.tracing.comparison import Comparison
from explorer.translations import _, translate
from explorer.views import graph_objects as go
from explorer.views.intervention_effects import annotate_empty
from explorer.views.patching.effect_map import DIRECTION, no_effect_message
from explorer.views.patching.prompt_pair import make_prompt_pair
from explorer.views.style import FEED_FORWARD, SELECTED, figure

TOP_NEURONS = 20


def neuron_effect_bars(runs: Comparison, selection: Selection) -> go.Figure:
    """Draw the neurons of the chosen layer with the largest effects, with a bar for each direction."""
    prompt_pair = make_prompt_pair(runs, selection)
    values = neuron_effects(prompt_pair.experiment, selection.layer, selection.option("metric"))  # (2, F)
    order = strongest_neuron_indices(values, TOP_NEURONS)
    names = [str(neuron) for neuron in order]
    hover, undefined_hover = _("neuron %{x}<br>effect %{y:+.3g}"), _("neuron %{x}<br>effect not defined")
    both = zip(("denoise", "noise"), np.nan_to_num(values[:, order]), (FEED_FORWARD, SELECTED), strict=True)
    fig = figure(
        [
            go.Bar(
                x=names,
                y=bars,
                customdata=order,
                name=translate(DIRECTION[direction]),
                marker={"color": colour},
                hovertemplate=(hover if np.isfinite(values).any() else undefined_hover) + "<extra></extra>",
            )
            for direction, bars, colour in both
        ],
        alt=_(
            "The {count} neurons of layer {layer} with the largest effects: first {neuron}, {effect}.",
            count=len(order),
            layer=selection.layer,
            neuron=names[0],
            effect=format_number(values[0, order[0]]),
        ),
        xaxis={"title": {"text": _("neuron of layer {layer}", layer=selection.layer)}, "type": "category"},
        yaxis={"title": {"text": _("effect")}},
        bargap=0.3,
    )
    if not np.isfinite(values).any():
        annotate_empty(fig, no_effect_message())
        return fig
    texts = [f"blocks.{selection.layer}.ffn.hidden.{neuron}*patch" for neuron in order]
    return fig.set_click_interventions(
        texts, prompt_pair.patched_run_field("denoise"), adds=False, query_in_a=prompt_pair.answer_in_a
    )
