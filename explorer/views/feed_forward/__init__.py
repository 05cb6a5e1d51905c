"""Feed-forward: what each neuron makes of a token."""

import numpy as np
import plotly.graph_objects as go

from explorer.analysis.feed_forward import ACTIVATIONS, BELL, NEAR, neuron, neurons, pushed, sparsity
from explorer.architecture.stream import norms_from
from explorer.explain.analysed.feed_forward import push, share_near_zero
from explorer.explain.captured import derivation_of
from explorer.explain.derivation import Derivation
from explorer.explain.notation import number, quoted
from explorer.explain.point import Point
from explorer.language import N_, _, look_up
from explorer.state.errors import NoSuchPoint
from explorer.state.selection import Selection
from explorer.tracing.trace import Trace
from explorer.views.checks import Mark, cell, recomputed, worked_out
from explorer.views.feed_forward.neuron_plots import (
    across_tokens,
    curve,
    most_pushed,
    promoted,
    shown_neurons,
    strongest,
)
from explorer.views.style import FEED_FORWARD, RESIDUAL, SELECTED, figure
from explorer.views.view import Panel, View

# Said of the values, of the neurons, and of the picture.
NEAR_0 = (
    N_("hidden values near 0"),
    N_("neurons near 0 at every token"),
    N_("By layer, hidden values near 0: {values}; neurons near 0 at all {tokens} tokens: {neurons}."),
)
EXACTLY_0 = (
    N_("hidden values exactly 0"),
    N_("neurons exactly 0 at every token (dead here)"),
    N_("By layer, hidden values exactly 0: {values}; neurons exactly 0 at all {tokens} tokens: {neurons}."),
)


def by_layer(trace: Trace, layer: int | None = None) -> go.Figure:
    """How much of each layer's feed-forward does next to nothing in this run; a frame around the chosen layer."""
    shares = sparsity(trace)
    exact = trace.config.ffn == "relu"
    values, silent, alt = EXACTLY_0 if exact else NEAR_0
    bars = (
        (look_up(values), shares.near_zero, FEED_FORWARD),
        (look_up(silent), shares.silent, RESIDUAL),
    )
    title = _("layer")
    if not exact:
        title = _(
            "layer<br>(near 0: within {near:g} × root mean square;<br>dotted: a bell curve's share, {bell:.0%})",
            near=NEAR,
            bell=BELL,
        )
    layers = np.arange(trace.config.num_layers)
    fig = figure(
        [
            go.Bar(
                x=layers,
                y=values,
                name=name,
                marker={"color": color},
                hovertemplate=_("layer %{{x}}<br>{name}: %{{y:.1%}}<extra></extra>", name=name),
            )
            for name, values, color in bars
        ],
        alt=look_up(
            alt,
            values=", ".join(f"{share:.0%}" for share in shares.near_zero),
            tokens=len(trace),
            neurons=", ".join(f"{share:.0%}" for share in shares.silent),
        ),
        xaxis={"title": {"text": title}, "dtick": 1, "showgrid": False},
        yaxis={"title": {"text": _("share")}, "range": [0, 1], "tickformat": ".0%"},
        barmode="group",
        bargap=0.3,
        hovermode="x",
    )
    if not exact:
        fig.add_hline(BELL, line={"color": RESIDUAL, "dash": "dot", "width": 1})
    if layer is not None:
        fig.add_vrect(layer - 0.5, layer + 0.5, line={"color": SELECTED, "width": 2})
    return fig


def formula(trace: Trace, selection: Selection) -> str:
    layer, chosen, query = selection.layer, selection.neuron, selection.query
    worked = neuron(trace, layer, chosen, query)
    biases = {part: f"blocks.{layer}.ffn.{part}_proj.bias" in trace.weights for part in ("gate", "up")}

    def projected(part: str) -> str:
        return f"W_{part}[{chosen}]·x" + f" + b_{part}[{chosen}]" * biases[part]

    head = _(
        "layer {layer} neuron {neuron} at {token} ({position}), which reads x = {value} ({width} numbers)",
        layer=layer,
        neuron=chosen,
        token=quoted(trace.tokens[query]),
        position=query,
        value=worked.read,
        width=trace.config.d_model,
    )
    working = look_up(
        PLAIN if worked.up is None else GATED,
        name=ACTIVATIONS[trace.config.ffn][0],
        into_gate=projected("gate"),
        into_up=projected("up"),
        before=number(worked.pre),
        after=number(worked.active),
        up=number(worked.up or 0),
        hidden=number(worked.hidden),
    )
    off = _("recomputed from x and the weights, off by {error}", error=number(worked.error))
    return f"{head}\n{working}   {off}"


PLAIN = N_("before = {into_up} = {before}\nhidden = {name}(before) = {name}({before}) = {hidden}")
GATED = N_(
    "gate   = {name}({into_gate}) = {name}({before}) = {after}\nup     = {into_up} = {up}\n"
    "hidden = gate · up = {after} · {up} = {hidden}"
)


def mark_of_neurons(trace: Trace, selection: Selection) -> Mark:
    """Where the dots are, and how much each neuron writes."""
    steps = ("gate_pre", "gate") * (trace.config.ffn == "swiglu")
    return recomputed(*(f"blocks.{{layer}}.ffn.{step}" for step in (*steps, "up", "hidden")))(trace, selection)


def mark_of_promoted(trace: Trace, selection: Selection) -> Mark:
    """The neuron's hidden value and what it reads, and what the norms on the way to the unembedding divide by."""
    layer, chosen, query = selection.layer, selection.neuron, selection.query
    read = (
        neuron(trace, layer, chosen, query).read,
        *(x for _norm, x in norms_from(trace.config, f"blocks.{layer}.resid_post")),
    )
    weights = "blocks.{layer}.ffn.down_proj.weight", "lm_head.weight"
    return worked_out(*weights, "blocks.{layer}.ffn.hidden", *read)(trace, selection)


def inspect_step(trace: Trace, s: Selection, point: Point) -> Derivation:
    """A bar of a neuron: what came in, what the activation made of it, …"""
    steps = ("gate", "up", "hidden") if trace.config.ffn == "swiglu" else ("up", "hidden")
    shown, _places = shown_neurons(neurons(trace, s.layer, s.query), s.neuron)
    step, item = point.of("curve"), point.of("item")
    if step >= len(steps) or item >= len(shown):
        raise NoSuchPoint(_("there is no such bar"))
    return derivation_of(trace, f"blocks.{s.layer}.ffn.{steps[step]}", (s.query, shown[item]))


def inspect_dot(trace: Trace, s: Selection, point: Point) -> tuple[Derivation, Derivation]:
    """A neuron before its activation, and after."""
    curve, item = point.of("curve"), point.of("item")
    if curve not in (1, 2) or (curve == 2 and item):
        raise NoSuchPoint(_("there is no such neuron"))
    which = s.neuron if curve == 2 else item + (item >= s.neuron)
    taps = ("gate_pre", "gate") if trace.config.ffn == "swiglu" else ("up", "hidden")
    before, after = (derivation_of(trace, f"blocks.{s.layer}.ffn.{tap}", (s.query, which)) for tap in taps)
    return before, after


def inspect_push(trace: Trace, s: Selection, point: Point) -> Derivation:
    shown = most_pushed(pushed(trace, s.layer, s.neuron, s.query))
    if point.of("item") >= len(shown):
        raise NoSuchPoint(_("there is no such bar"))
    return push(trace, s.layer, s.neuron, s.query, int(shown[point.of("item")]))


VIEW = View(
    name="feed_forward",
    title=N_("Feed-forward"),
    words=N_(
        "After attention has fetched, many small detectors (neurons) each look at one token alone, and each answers "
        "with a number: its activation, or hidden value. "
        "That number says how much of the neuron's own vector (its output direction) is added to the token's. "
        "Choose a neuron to see where it is active and which next words it pushes up or down."
    ),
    formula=formula,
    needs=("blocks.*.ffn.hidden", "blocks.*.ffn.up"),
    otherwise=lambda config: _("This model has no feed-forward."),
    controls=("layer", "neuron", "query"),
    panels=(
        Panel(
            name="strongest",
            title=N_("The neurons that write most at the chosen token"),
            draw=lambda trace, s: strongest(trace, s.layer, s.neuron, s.query),
            inspect=inspect_step,
            selects={"customdata": "neuron"},
            mark=mark_of_neurons,
            height=320,
            min_width=640,
        ),
        Panel(
            name="curve",
            title=N_("All neurons at the chosen token, on the activation function"),
            draw=lambda trace, s: curve(trace, s.layer, s.neuron, s.query),
            inspect=inspect_dot,
            selects={"customdata": "neuron"},
            mark=mark_of_neurons,
            height=460,
            width="half",
        ),
        Panel(
            name="promoted",
            title=N_("Next tokens that the chosen neuron pushes up and down"),
            draw=lambda trace, s: promoted(trace, s.layer, s.neuron, s.query),
            inspect=inspect_push,
            mark=mark_of_promoted,
            height=460,
            width="half",
        ),
        Panel(
            name="tokens",
            title=N_("The chosen neuron at every token"),
            draw=lambda trace, s: across_tokens(trace, s.layer, s.neuron, s.query),
            selects={"x": "query"},
            mark=recomputed("blocks.{layer}.ffn.hidden"),
            inspect=cell("blocks.{layer}.ffn.hidden", "x", "neuron"),
            height=320,
            width="half",
        ),
        Panel(
            name="layers",
            title=N_("Sparsity: how many hidden values do next to nothing"),
            draw=lambda trace, s: by_layer(trace, s.layer),
            inspect=lambda trace, s, point: share_near_zero(trace, point.of("item"), point.of("curve") == 1),
            selects={"x": "layer"},
            mark=worked_out("blocks.*.ffn.hidden"),
            height=320,
            width="half",
        ),
    ),
)
