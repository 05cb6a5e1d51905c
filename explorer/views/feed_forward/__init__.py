"""Feed-forward: what each neuron makes of a token."""

from explorer.analysis.feed_forward import neuron, neurons, pushed
from explorer.architecture.stream import joining, norms_among, way_of
from explorer.explain.analysed.feed_forward import push, share_near_zero
from explorer.explain.captured import derivation_of
from explorer.explain.derivation import Derivation
from explorer.explain.point import Point
from explorer.language import N_, _
from explorer.state.errors import NoSuchPoint
from explorer.state.selection import Selection
from explorer.tracing.trace import Trace
from explorer.views.checks import Mark, cell, recomputed, worked_out
from explorer.views.feed_forward.formula import formula
from explorer.views.feed_forward.neuron_plots import across_tokens, curve, other_dots, shown_neurons, strongest
from explorer.views.feed_forward.promoted_plot import most_pushed, promoted
from explorer.views.feed_forward.sparsity_plot import by_layer
from explorer.views.two_runs.alone import LISTS, alone
from explorer.views.view import Panel, View
from explorer.views.what_ifs import GATE, HIDDEN, NEURON


def mark_of_neurons(trace: Trace, selection: Selection) -> Mark:
    """Where the dots are, and how much each neuron writes, by what a norm on the way divides by."""
    steps = ("gate_pre", "gate") * (trace.config.is_gated)
    normalised = norms_among(trace.config, joining(trace.config, selection.layer, "ffn")).values()
    shown = *(f"blocks.{{layer}}.ffn.{step}" for step in (*steps, "up", "hidden")), *normalised
    return recomputed(*shown)(trace, selection)


def mark_of_promoted(trace: Trace, selection: Selection) -> Mark:
    """The neuron's hidden value and what it reads, what the norms on the way to the unembedding divide by, and what a
    cap of the logits makes of the whole."""
    layer, chosen, query = selection.layer, selection.neuron, selection.query
    read = (
        neuron(trace, layer, chosen, query).read,
        *norms_among(trace.config, way_of(trace.config, layer, "ffn")).values(),
    )
    whole = ["final_norm"] * (trace.config.logit_cap is not None)
    weights = "blocks.{layer}.ffn.down_proj.weight", "lm_head.weight"
    return worked_out(*weights, "blocks.{layer}.ffn.hidden", *read, *whole)(trace, selection)


def inspect_step(trace: Trace, s: Selection, point: Point) -> Derivation:
    """A bar of a neuron: what came in, what the activation made of it, …"""
    steps = ("gate", "up", "hidden") if trace.config.is_gated else ("up", "hidden")
    shown, _places = shown_neurons(neurons(trace, s.layer, s.query), s.neuron)
    step, item = point.of("curve"), point.of("item")
    if step >= len(steps) or item >= len(shown):
        raise NoSuchPoint(_("there is no such bar"))
    return derivation_of(trace, f"blocks.{s.layer}.ffn.{steps[step]}", (s.query, shown[item]))


def inspect_dot(trace: Trace, s: Selection, point: Point) -> tuple[Derivation, Derivation]:
    """A neuron before its activation, and after."""
    curve, item = point.of("curve"), point.of("item")
    dots = {1: other_dots(neurons(trace, s.layer, s.query), s.neuron).tolist(), 2: [s.neuron]}.get(curve, [])
    if item >= len(dots):
        raise NoSuchPoint(_("there is no such neuron"))
    which = dots[item]
    taps = ("gate_pre", "gate") if trace.config.is_gated else ("up", "hidden")
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
    what_ifs=(NEURON, GATE, HIDDEN),
    panels=(
        Panel(
            name="strongest",
            alone=alone(LISTS),
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
            alone=alone(LISTS),
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
            alone=alone(LISTS),
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
