"""The feed-forward view's pictures of neurons: the strongest, all on their curve, one across tokens, and its words."""

import numpy as np

from explorer.analysis.feed_forward import ACTIVATIONS, Neurons, neurons
from explorer.explain.notation import number, quoted
from explorer.language import _
from explorer.tracing.trace import Trace
from explorer.views import graph_objects as go
from explorer.views.style import FEED_FORWARD, MONO, RESIDUAL, SELECTED, figure, positions, token_axis

MOST_NEURONS = 20
MOST_PLACES = (
    600  # of dots on the curve: it has no more pixels, and each dot takes the browser a tenth of a millisecond
)
PALE = "rgba(230, 159, 0, 0.45)"  # the feed-forward's orange; a legend shows no opacity of its own


def strongest(trace: Trace, layer: int, chosen: int, query: int) -> go.Figure:
    """The neurons that write most at a token, strongest first, step by step; the chosen one last if not among them."""
    all_neurons = neurons(trace, layer, query)
    shown, places = shown_neurons(all_neurons, chosen)
    name = ACTIVATIONS[trace.config.ffn][0]
    if all_neurons.up is None:
        steps = [
            (_("before {activation}", activation=name), all_neurons.pre, RESIDUAL),
            (_("hidden = {activation}(before)", activation=name), all_neurons.hidden, FEED_FORWARD),
        ]
    else:
        steps = [
            (_("gate, after {activation}", activation=name), all_neurons.active, PALE),
            ("up", all_neurons.up, RESIDUAL),
            (_("hidden = gate × up"), all_neurons.hidden, FEED_FORWARD),
        ]
    fig = figure(
        [
            go.Bar(
                x=places,
                y=values[shown],
                name=step,
                customdata=shown,
                text=[number(length) for length in all_neurons.written[shown]],
                textposition="none",
                marker={"color": color},
                hovertemplate=_("{step}: %{{y:.4g}}<br>writes a vector of length %{{text}}<extra></extra>", step=step)
                if values is all_neurons.hidden
                else f"{step}: %{{y:.4g}}<extra></extra>",
            )
            for step, values, color in steps
        ],
        alt=_(
            "The neurons of layer {layer}, {count} in all, that write most at {token}: most is neuron {most}, with a "
            "hidden value of {value}; the chosen neuron {chosen} has {chosen_value}.",
            layer=layer,
            count=trace.config.d_ff,
            token=quoted(trace.tokens[query]),
            most=shown[0],
            value=number(all_neurons.hidden[shown[0]]),
            chosen=chosen,
            chosen_value=number(all_neurons.hidden[chosen]),
        ),
        xaxis={
            "title": {"text": _("neuron (the one that writes most first)")},
            "tickvals": places,
            "ticktext": [str(n) for n in shown],
            "tickfont": {"family": MONO, "size": 11},
            "tickangle": -45,
            "ticklabeloverflow": "allow",  # each is below its bars
            "showgrid": False,
        },
        yaxis={"title": {"text": _("value")}},
        barmode="group",
        bargap=0.3,
        hovermode="x",  # a short bar is hard to hit
        legend={"x": 0, "xanchor": "left"},
    )
    place = places[shown.index(chosen)]
    fig.add_vrect(place - 0.5, place + 0.5, line={"color": SELECTED, "width": 2})
    return fig


def shown_neurons(all_neurons: Neurons, chosen: int) -> tuple[list[int], list[int]]:
    """Which neurons have bars, and their places along the axis."""
    shown = all_neurons.top(MOST_NEURONS).tolist()
    places = list(range(len(shown)))
    if chosen not in shown:
        shown.append(chosen)
        places.append(len(places) + 1)  # after a gap
    return shown, places


def curve(trace: Trace, layer: int, chosen: int, query: int) -> go.Figure:
    """Every neuron at a token as a dot on the activation function; the more it writes, the larger. Of very many those
    that are seen: where several fall on one place the one that writes most."""
    all_neurons = neurons(trace, layer, query)
    name, activation = ACTIVATIONS[trace.config.ffn]
    weights = "gate_proj" if all_neurons.up is not None else "up_proj"
    into = _("into {activation}: {weights}(x)<br>(larger dots write more)", activation=name, weights=weights)
    ends = min(-2.0, float(all_neurons.pre.min())), max(2.0, float(all_neurons.pre.max()))
    line = np.linspace(*ends, 241)
    written = _finite(all_neurons.written)  # no dot is as large as what is none
    sizes = 4 + 12 * np.sqrt(written / max(float(written.max()), 1e-12))
    others = other_dots(all_neurons, chosen)
    hides = _("where dots lie together, the largest is drawn") if len(others) + 1 < trace.config.d_ff else ""
    hover = _("neuron %{{customdata}}<br>{activation}(%{{x:.4g}}) = %{{y:.4g}}<extra></extra>", activation=name)
    dots = [
        go.Scatter(
            x=all_neurons.pre[which],
            y=all_neurons.active[which],
            customdata=which,
            mode="markers",
            marker={"color": color, "size": size, "opacity": opacity, "line": {"width": 0}},
            name=words,
            hovertemplate=hover,
            showlegend=color == SELECTED,
        )
        for which, words, color, size, opacity in (
            (others, _("the others"), FEED_FORWARD, sizes[others], 0.5),
            (np.array([chosen]), _("neuron {neuron}", neuron=chosen), SELECTED, 13, 1),
        )
    ]
    along = go.Scatter(
        x=line, y=activation(line), mode="lines", line={"color": RESIDUAL, "width": 1.5}, name=name, hoverinfo="skip"
    )
    return figure(
        [along, *dots],
        alt=_(
            "{count} neurons at {token} on the curve of {activation}: {above:.0%} of them above 0; neuron {neuron} "
            "goes in as {before} and comes out as {after}.",
            count=trace.config.d_ff,
            token=quoted(trace.tokens[query]),
            activation=name,
            above=(all_neurons.pre > 0).mean(),
            neuron=chosen,
            before=number(all_neurons.pre[chosen]),
            after=number(all_neurons.active[chosen]),
        ),
        xaxis={"title": {"text": "<br>".join(filter(None, [into, hides]))}, "zeroline": True},
        yaxis={"title": {"text": _("out of {activation}", activation=name)}, "zeroline": True},
    )


def other_dots(all_neurons: Neurons, chosen: int) -> np.ndarray:
    """Which neurons have dots beside the chosen one: all, or of more than `MOST_PLACES` the one that writes most in
    each of so many equal parts of the curve."""
    others = np.delete(np.arange(len(all_neurons.pre)), chosen)
    if len(others) <= MOST_PLACES:
        return others
    before, written = _finite(all_neurons.pre)[others], _finite(all_neurons.written)[others]
    along = (before - before.min()) / max(float(np.ptp(before)), 1e-12)  # 0 to 1
    parts = (along * MOST_PLACES).astype(int).clip(max=MOST_PLACES - 1)
    order = np.lexsort((written, parts))
    is_last = np.append(np.diff(parts[order]) > 0, True)
    return np.sort(others[order[is_last]])


def _finite(values: np.ndarray) -> np.ndarray:
    return np.where(np.isfinite(values), values, 0)


def across_tokens(trace: Trace, layer: int, chosen: int, query: int) -> go.Figure:
    """The hidden value of one neuron at every token."""
    values = trace[f"blocks.{layer}.ffn.hidden"][:, chosen]  # (T,)
    places = positions(trace.tokens)
    most = int(np.abs(values).argmax())
    fig = figure(
        go.Bar(
            x=places,
            y=values,
            marker={"color": [SELECTED if i == query else FEED_FORWARD for i in range(len(values))]},
            hovertext=places,
            hovertemplate=_("token %{hovertext}<br>hidden %{y:.4g}<extra></extra>"),
        ),
        alt=_(
            "Hidden value of layer {layer}'s neuron {neuron} at {tokens} tokens: furthest from 0, {value}, at {token}.",
            layer=layer,
            neuron=chosen,
            tokens=len(values),
            value=number(values[most]),
            token=quoted(trace.tokens[most]),
        ),
        xaxis={**token_axis(trace.tokens, _("token"), most=24), "tickangle": -60},
        yaxis={"title": {"text": _("hidden value of neuron {neuron}", neuron=chosen)}},
        bargap=0.15,
        hovermode="x",
    )
    fig.add_vrect(query - 0.5, query + 0.5, line={"color": SELECTED, "width": 1})
    if not values.any():
        note = {"text": _("0 at every token: dead in this run"), "yref": "paper", "y": 0.75}
        fig.add_annotation(xref="paper", x=0.5, showarrow=False, **note)
    return fig
