"""Neurons of all layers by what they add to a logit."""

import numpy as np

from explorer.analysis.feed_forward import check_neuron_sum, neuron_contribution, neuron_contributions
from explorer.explain.derivation import ClickedPoint, Derivation, get_item
from explorer.explain.notation import format_contribution, format_number, quote_token
from explorer.state.selection import Selection
from explorer.tracing.trace import Trace
from explorer.translations import N_, _
from explorer.views import graph_objects as go
from explorer.views.figure_template import FigureTemplate, text, value
from explorer.views.labels import ATTRIBUTION_TAPS, PARTS, logit_label, target_and_contrast
from explorer.views.style import FEED_FORWARD, MONO, column_band, label, note_above
from explorer.views.verification import verify_derived
from explorer.views.view import LISTS, Panel

MAX_NEURONS = 20


def top_neurons(trace: Trace, selection: Selection) -> list[tuple[int, int]]:
    """Return the layer and number of the neurons that add or take most, the largest first; ties by lower number."""
    contributions = neuron_contributions(trace, selection.query, *target_and_contrast(trace, selection))
    order = np.argsort(-np.abs(contributions), axis=None, kind="stable")[:MAX_NEURONS]
    return [tuple(map(int, np.unravel_index(index, contributions.shape))) for index in order]


def neuron_contribution_bars(trace: Trace, selection: Selection) -> go.Figure:
    """Draw the neurons of all layers that add most to the logit, or take most from it."""
    token_ids = target_and_contrast(trace, selection)
    contributions = neuron_contributions(trace, selection.query, *token_ids)
    neurons = top_neurons(trace, selection)
    names = [f"L{layer}<br>n{neuron}" for layer, neuron in neurons]
    values = [float(contributions[neuron]) for neuron in neurons]
    hidden = [float(trace[f"blocks.{layer}.ffn.hidden"][selection.query, neuron]) for layer, neuron in neurons]
    chosen = (selection.layer, selection.neuron)
    return NEURONS_FIGURE.draw(
        offsets=list(range(len(neurons))),
        names=names,
        values=values,
        neurons=[list(neuron) for neuron in neurons],
        hover=[
            _(
                "layer {layer} neuron {neuron}<br>hidden {value}",
                layer=layer,
                neuron=neuron,
                value=format_number(number),
            )
            for (layer, neuron), number in zip(neurons, hidden, strict=True)
        ],
        count=contributions.size,
        logit=logit_label(trace, *token_ids),
        label=logit_label(trace, *token_ids, label),
        token=quote_token(trace.tokens[selection.query]),
        most=names[0].replace("<br>", " "),
        added=format_contribution(values[0]),
        shown=len(neurons),
        sum_shown=format_contribution(sum(values)),
        total=format_contribution(contributions.sum()),
        frames=[column_band(neurons.index(chosen), width=2)] if chosen in neurons else [],
    )


NEURONS_FIGURE = FigureTemplate(
    alt=text(
        N_(
            "The {shown} of {count} neurons that change {logit} after {token} most: first neuron {most}, by {added}. "
            "All together: {total}."
        )
    ),
    traces=[
        go.Bar(
            x=value("offsets"),
            y=value("values"),
            customdata=value("neurons"),
            hovertext=value("hover"),
            marker={"color": FEED_FORWARD},
            hovertemplate=text(N_("%{hovertext}<br>adds %{y:+.4g}<extra></extra>")),
        )
    ],
    layout={
        "annotations": note_above(
            text(N_("These {shown} add {sum_shown} to {label}; all {count:,} neurons together {total}."))
        ),
        "xaxis": {
            "title": {"text": text(N_("neuron (layer and number), by what it adds or takes"))},
            "tickvals": value("offsets"),
            "ticktext": value("names"),
            "tickfont": {"family": MONO, "size": 11},
            "ticklabeloverflow": "allow",
            "showgrid": False,
        },
        "yaxis": {"title": {"text": text(N_("part of the logit"))}},
        "hovermode": "x",  # a short bar is hard to hit
        "shapes": value("frames"),
    },
)


def inspect_neuron(trace: Trace, selection: Selection, point: ClickedPoint) -> Derivation:
    """Derive what the clicked neuron adds."""
    layer, neuron = get_item(top_neurons(trace, selection), point.coordinate("item"))
    return neuron_contribution(trace, selection.query, *target_and_contrast(trace, selection), layer, neuron)


NEURON_SUM_CHECK = (
    N_("the sum of the neurons against what each feed-forward adds"),
    lambda trace, s: check_neuron_sum(trace, s.query, *target_and_contrast(trace, s)),
)

PANEL = Panel(
    name="all_layers",
    template=NEURONS_FIGURE,
    required_taps=ATTRIBUTION_TAPS,
    no_difference_reason=LISTS,
    title=N_("Direct logit attribution: neurons of all layers"),
    heading=N_("Neurons of all layers, by what they add to {logit}"),
    draw=neuron_contribution_bars,
    inspect=inspect_neuron,
    click_selects={"customdata": ("layer", "neuron")},
    verify=verify_derived(*PARTS, "blocks.*.ffn.hidden", "logits", against=NEURON_SUM_CHECK),
    height=340,
    min_width=600,
)
