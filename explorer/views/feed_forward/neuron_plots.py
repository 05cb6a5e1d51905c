"""The feed-forward view's pictures of neurons: the strongest, all on their curve, one across tokens, and its words."""

import numpy as np
import plotly.graph_objects as go

from explorer.analysis.feed_forward import ACTIVATIONS, Neurons, neuron, neurons, pushed
from explorer.explain.notation import number, quoted
from explorer.tracing.trace import Trace
from explorer.views.style import FEED_FORWARD, MONO, RESIDUAL, SELECTED, figure, label, positions, token_axis

MOST_NEURONS = 20
MOST_TOKENS = 10  # each way
WRITES = "<br>writes a vector of length %{text}"
PALE = "rgba(230, 159, 0, 0.45)"  # the feed-forward's orange; a legend shows no opacity of its own


def strongest(trace: Trace, layer: int, chosen: int, query: int) -> go.Figure:
    """The neurons that write most at a token, strongest first, step by step; the chosen one last if not among them."""
    all_neurons = neurons(trace, layer, query)
    shown, places = shown_neurons(all_neurons, chosen)
    name = ACTIVATIONS[trace.config.ffn][0]
    if all_neurons.up is None:
        steps = [
            (f"before {name}", all_neurons.pre, RESIDUAL),
            (f"hidden = {name}(before)", all_neurons.hidden, FEED_FORWARD),
        ]
    else:
        steps = [
            (f"gate, after {name}", all_neurons.active, PALE),
            ("up", all_neurons.up, RESIDUAL),
            ("hidden = gate × up", all_neurons.hidden, FEED_FORWARD),
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
                hovertemplate=f"{step}: %{{y:.4g}}{WRITES * (values is all_neurons.hidden)}<extra></extra>",
            )
            for step, values, color in steps
        ],
        alt=(
            f"The neurons of layer {layer}, {trace.config.d_ff} in all, that write most "
            f"at {quoted(trace.tokens[query])}: most is neuron {shown[0]}, with a hidden value of "
            f"{number(all_neurons.hidden[shown[0]])}; the chosen neuron {chosen} has "
            f"{number(all_neurons.hidden[chosen])}."
        ),
        xaxis={
            "title": {"text": "neuron (the one that writes most first)"},
            "tickvals": places,
            "ticktext": [str(n) for n in shown],
            "tickfont": {"family": MONO, "size": 11},
            "tickangle": -45,
            "showgrid": False,
        },
        yaxis={"title": {"text": "value"}},
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
    """Every neuron at a token as a dot on the activation function; the more it writes, the larger."""
    all_neurons = neurons(trace, layer, query)
    name, activation = ACTIVATIONS[trace.config.ffn]
    before = "gate" if all_neurons.up is not None else "up"
    ends = min(-2.0, float(all_neurons.pre.min())), max(2.0, float(all_neurons.pre.max()))
    line = np.linspace(*ends, 241)
    others = np.delete(np.arange(trace.config.d_ff), chosen)
    written = np.where(np.isfinite(all_neurons.written), all_neurons.written, 0)  # no dot is as large as what is none
    sizes = 4 + 12 * np.sqrt(written / max(float(written.max()), 1e-12))
    hover = f"neuron %{{customdata}}<br>{name}(%{{x:.4g}}) = %{{y:.4g}}<extra></extra>"
    dots = [
        go.Scatter(
            x=all_neurons.pre[which],
            y=all_neurons.active[which],
            customdata=which,
            mode="markers",
            marker={"color": color, "size": size, "opacity": opacity, "line": {"width": 0}},
            name=words,
            hovertemplate=hover,
            showlegend=words == f"neuron {chosen}",
        )
        for which, words, color, size, opacity in (
            (others, "the others", FEED_FORWARD, sizes[others], 0.5),
            (np.array([chosen]), f"neuron {chosen}", SELECTED, 13, 1),
        )
    ]
    along = go.Scatter(
        x=line, y=activation(line), mode="lines", line={"color": RESIDUAL, "width": 1.5}, name=name, hoverinfo="skip"
    )
    return figure(
        [along, *dots],
        alt=(
            f"{trace.config.d_ff} neurons at {quoted(trace.tokens[query])} on the curve of {name}: "
            f"{(all_neurons.pre > 0).mean():.0%} of them above 0; neuron {chosen} goes in as "
            f"{number(all_neurons.pre[chosen])} and comes out as {number(all_neurons.active[chosen])}."
        ),
        xaxis={"title": {"text": f"into {name}: {before}_proj(x)<br>(larger dots write more)"}, "zeroline": True},
        yaxis={"title": {"text": f"out of {name}"}, "zeroline": True},
    )


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
            hovertemplate="token %{hovertext}<br>hidden %{y:.4g}<extra></extra>",
        ),
        alt=(
            f"Hidden value of layer {layer}'s neuron {chosen} at {len(values)} tokens: furthest from 0, "
            f"{number(values[most])}, at {quoted(trace.tokens[most])}."
        ),
        xaxis={**token_axis(trace.tokens, "token", most=24), "tickangle": -60},
        yaxis={"title": {"text": f"hidden value of neuron {chosen}"}},
        bargap=0.15,
        hovermode="x",
    )
    fig.add_vrect(query - 0.5, query + 0.5, line={"color": SELECTED, "width": 1})
    if not values.any():
        note = {"text": "0 at every token: dead in this run", "yref": "paper", "y": 0.75}
        fig.add_annotation(xref="paper", x=0.5, showarrow=False, **note)
    return fig


def most_pushed(push: np.ndarray) -> np.ndarray:
    """Of what a neuron adds to all logits (V,), the ids of the tokens that it raises and lowers most."""
    each = min(MOST_TOKENS, len(push) // 2)
    order = np.argsort(-push, kind="stable")
    return np.concatenate([order[:each], order[-each:]])


def promoted(trace: Trace, layer: int, chosen: int, query: int) -> go.Figure:
    """The tokens whose logits the neuron's output direction raises and lowers most."""
    push = pushed(trace, layer, chosen, query)  # (V,)
    hidden = neuron(trace, layer, chosen, query).hidden
    shown = most_pushed(push)
    each = len(shown) // 2
    names = [trace.vocabulary[token_id] for token_id in shown]
    turned = ",<br>below 0, so that all turns round" if hidden < 0 else ""
    fig = figure(
        go.Bar(
            x=push[shown],
            y=np.arange(len(shown)),
            orientation="h",
            text=[
                f"{label(name)}<br>adds {number(hidden * by)} here" for name, by in zip(names, push[shown], strict=True)
            ],
            textposition="none",
            marker={"color": FEED_FORWARD},
            hovertemplate="%{text}<br>%{x:.4g} for each 1 of the hidden value<extra></extra>",
        ),
        alt=(
            f"Neuron {chosen} of layer {layer} promotes {', '.join(quoted(name) for name in names[:3])} most and "
            f"suppresses {', '.join(quoted(name) for name in names[:-4:-1])}; hidden value here {number(hidden)}."
        ),
        xaxis={
            "title": {
                "text": f"logit for each 1 of the hidden value,<br>norm gains folded in; here {number(hidden)}{turned}"
            }
        },
        yaxis={
            "tickvals": list(range(len(shown))),
            "ticktext": [label(name) for name in names],
            "tickfont": {"family": MONO, "size": 11},
            "range": [len(shown) - 0.4, -0.6],
            "showgrid": False,
            "zeroline": False,
        },
        bargap=0.25,
    )
    fig.add_hline(each - 0.5, line={"color": RESIDUAL, "width": 1, "dash": "dot"})
    return fig
