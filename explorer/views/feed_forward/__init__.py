"""Feed-forward view: the neurons of a layer at a token."""

from explorer.analysis.feed_forward import (
    layer_neurons,
    neuron_logit_effect,
    neuron_logit_effects,
    recompute_neuron,
    share_near_zero,
)
from explorer.architecture.residual_stream import norm_inputs, output_taps, path_to_unembedding
from explorer.errors import PointNotFoundError
from explorer.explain.captured import derive
from explorer.explain.captured.formulas import ACTIVATIONS
from explorer.explain.clicked_point import ClickedPoint
from explorer.explain.derivation import Derivation
from explorer.explain.notation import format_number, quote_token
from explorer.state.selection import Selection
from explorer.tracing.trace import Trace
from explorer.translations import N_, _, translate
from explorer.views.feed_forward.neuron_plots import (
    activation_curve,
    bar_neurons_and_offsets,
    most_affected_tokens,
    neuron_across_tokens,
    other_drawn_neurons,
    promoted_tokens,
    sparsity_by_layer,
    strongest_neurons,
)
from explorer.views.intervention_controls import GATE, HIDDEN, NEURON
from explorer.views.verification import Verification, inspect_captured, verify_captured, verify_derived
from explorer.views.view import LISTS, Panel, View, make_no_difference_reason

PLAIN = N_("before = {into_up} = {before}\nhidden = {name}(before) = {name}({before}) = {hidden}")
GATED = N_(
    "gate   = {name}({into_gate}) = {name}({before}) = {after}\nup     = {into_up} = {up}\n"
    "hidden = gate · up = {after} · {up} = {hidden}"
)


def formula(trace: Trace, selection: Selection) -> str:
    """Return the selected neuron's projections and activation, in numbers."""
    layer, chosen_neuron, query = selection.layer, selection.neuron, selection.query
    worked = recompute_neuron(trace, layer, chosen_neuron, query)
    biases = {part: f"blocks.{layer}.ffn.{part}_proj.bias" in trace.weights for part in ("gate", "up")}

    def format_projection(matrix: str) -> str:
        return f"W_{matrix}[{chosen_neuron}]·x" + f" + b_{matrix}[{chosen_neuron}]" * biases[matrix]

    head = _(
        "layer {layer} neuron {neuron} at {token} ({position}), which reads x = {value} ({width} numbers)",
        layer=layer,
        neuron=chosen_neuron,
        token=quote_token(trace.tokens[query]),
        position=query,
        value=worked.read,
        width=trace.config.d_model,
    )
    working = translate(
        PLAIN if worked.up is None else GATED,
        name=ACTIVATIONS[trace.config.ffn][0],
        into_gate=format_projection("gate"),
        into_up=format_projection("up"),
        before=format_number(worked.pre),
        after=format_number(worked.active),
        up=format_number(worked.up or 0),
        hidden=format_number(worked.hidden),
    )
    off = _("recomputed from x and the weights, off by {error}", error=format_number(worked.error))
    return f"{head}\n{working}   {off}"


def verify_activations(trace: Trace, selection: Selection) -> Verification:
    """Verify the activations, and the values whose norms divide what each neuron writes."""
    steps = ("gate_pre", "gate") * (trace.config.is_gated)
    normalised = norm_inputs(trace.config, output_taps(trace.config, selection.layer, "ffn")).values()
    names = *(f"blocks.{{layer}}.ffn.{step}" for step in (*steps, "up", "hidden")), *normalised
    return verify_captured(*names)(trace, selection)


def verify_promoted_tokens(trace: Trace, selection: Selection) -> Verification:
    """Verify what the promoted tokens are derived from.

    These are the neuron's hidden value and its inputs, the inputs of the norms on the path to the unembedding
    and, with a softcap of the logits, the final norm's output.
    """
    layer, chosen_neuron, query = selection.layer, selection.neuron, selection.query
    read = (
        recompute_neuron(trace, layer, chosen_neuron, query).read,
        *norm_inputs(trace.config, path_to_unembedding(trace.config, layer, "ffn")).values(),
    )
    softcap_inputs = ["final_norm"] * (trace.config.logit_cap is not None)
    weights = "blocks.{layer}.ffn.down_proj.weight", "lm_head.weight"
    return verify_derived(*weights, "blocks.{layer}.ffn.hidden", *read, *softcap_inputs)(trace, selection)


def inspect_neuron_bar(trace: Trace, selection: Selection, point: ClickedPoint) -> Derivation:
    """Derive a clicked bar: the neuron's pre-activation, gate, activation or hidden value."""
    steps = ("gate", "up", "hidden") if trace.config.is_gated else ("up", "hidden")
    neuron_ids, _places = bar_neurons_and_offsets(
        layer_neurons(trace, selection.layer, selection.query), selection.neuron
    )
    step, item = point.coordinate("curve"), point.coordinate("item")
    if step >= len(steps) or item >= len(neuron_ids):
        raise PointNotFoundError(_("there is no such bar"))
    return derive(trace, f"blocks.{selection.layer}.ffn.{steps[step]}", (selection.query, neuron_ids[item]))


def inspect_neuron_dot(trace: Trace, selection: Selection, point: ClickedPoint) -> tuple[Derivation, Derivation]:
    """Derive a neuron's value before and after its activation function."""
    curve, item = point.coordinate("curve"), point.coordinate("item")
    dots = {
        1: other_drawn_neurons(layer_neurons(trace, selection.layer, selection.query), selection.neuron).tolist(),
        2: [selection.neuron],
    }.get(curve, [])
    if item >= len(dots):
        raise PointNotFoundError(_("there is no such neuron"))
    neuron_id = dots[item]
    taps = ("gate_pre", "gate") if trace.config.is_gated else ("up", "hidden")
    before, after = (derive(trace, f"blocks.{selection.layer}.ffn.{tap}", (selection.query, neuron_id)) for tap in taps)
    return before, after


def inspect_logit_effect(trace: Trace, selection: Selection, point: ClickedPoint) -> Derivation:
    """Derive the clicked logit effect of the selected neuron."""
    token_ids = most_affected_tokens(neuron_logit_effects(trace, selection.layer, selection.neuron, selection.query))
    if point.coordinate("item") >= len(token_ids):
        raise PointNotFoundError(_("there is no such bar"))
    return neuron_logit_effect(
        trace, selection.layer, selection.neuron, selection.query, int(token_ids[point.coordinate("item")])
    )


VIEW = View(
    name="feed_forward",
    title=N_("Feed-forward"),
    group="components",
    order=60,
    description=N_(
        "Each neuron looks at one token and answers with a number: how much of its output vector is added to the "
        "stream."
    ),
    formula=formula,
    required_taps=("blocks.*.ffn.hidden", "blocks.*.ffn.up"),
    unavailable_message=lambda config: _("This model has no feed-forward."),
    controls=("layer", "neuron", "query"),
    intervention_controls=(NEURON, GATE, HIDDEN),
    code=("blocks.{layer}.ffn", "blocks.{layer}.ffn_norm"),
    panels=(
        Panel(
            name="strongest",
            no_difference_reason=make_no_difference_reason(LISTS),
            title=N_("The neurons that write most at the chosen token"),
            draw=lambda trace, s: strongest_neurons(trace, s.layer, s.neuron, s.query),
            inspect=inspect_neuron_bar,
            click_selects={"customdata": "neuron"},
            verify=verify_activations,
            height=320,
            min_width=640,
        ),
        Panel(
            name="curve",
            no_difference_reason=make_no_difference_reason(LISTS),
            title=N_("All neurons at the chosen token, on the activation function"),
            draw=lambda trace, s: activation_curve(trace, s.layer, s.neuron, s.query),
            inspect=inspect_neuron_dot,
            click_selects={"customdata": "neuron"},
            verify=verify_activations,
            height=460,
            width="half",
        ),
        Panel(
            name="promoted",
            no_difference_reason=make_no_difference_reason(LISTS),
            title=N_("Next tokens that the chosen neuron pushes up and down"),
            draw=lambda trace, s: promoted_tokens(trace, s.layer, s.neuron, s.query),
            inspect=inspect_logit_effect,
            verify=verify_promoted_tokens,
            height=460,
            width="half",
        ),
        Panel(
            name="tokens",
            title=N_("The chosen neuron at every token"),
            draw=lambda trace, s: neuron_across_tokens(trace, s.layer, s.neuron, s.query),
            click_selects={"x": "query"},
            verify=verify_captured("blocks.{layer}.ffn.hidden"),
            inspect=inspect_captured("blocks.{layer}.ffn.hidden", "x", "neuron"),
            height=320,
            width="half",
        ),
        Panel(
            name="layers",
            title=N_("Sparsity: how many hidden values do next to nothing"),
            draw=lambda trace, s: sparsity_by_layer(trace, s.layer),
            inspect=lambda trace, s, point: share_near_zero(
                trace, point.coordinate("item"), point.coordinate("curve") == 1
            ),
            click_selects={"x": "layer"},
            verify=verify_derived("blocks.*.ffn.hidden"),
            height=320,
            width="half",
        ),
    ),
)
