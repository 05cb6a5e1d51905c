"""Feed-forward view: the neurons of a layer at a token."""

import numpy as np

from explorer.analysis.feed_forward import (
    NEAR_ZERO_RATIO,
    NORMAL_SHARE,
    RELU_KINDS,
    LayerNeurons,
    derive_neuron,
    layer_neurons,
    neuron_logit_effect,
    neuron_logit_effects,
    recompute_neuron,
    share_near_zero,
    sparsity,
)
from explorer.analysis.next_token import top_indices
from explorer.architecture.residual_stream import block_layout, norm_inputs, path_to_unembedding
from explorer.explain.captured.formulas import ACTIVATIONS, active_interventions
from explorer.explain.derivation import ClickedPoint, Derivation, get_item
from explorer.explain.notation import format_contribution, format_factor, format_number, format_six_digits, quote_token
from explorer.state.selection import Selection
from explorer.tracing.trace import Trace
from explorer.translations import N_, _, translate
from explorer.views import graph_objects as go
from explorer.views.feed_forward.neuron_contributions import PANEL as NEURONS_OF_ALL_LAYERS
from explorer.views.figure_template import FigureTemplate, each, extend, text, value
from explorer.views.intervention_controls import GATE, HIDDEN, NEURON, NEURON_OFF
from explorer.views.style import (
    FEED_FORWARD,
    MONO,
    RESIDUAL,
    SELECTED,
    column_band,
    label,
    note_above,
    position_labels,
    row_line,
    token_axis,
)
from explorer.views.verification import (
    Verification,
    describe_recomputation,
    inspect_captured,
    verify_captured,
    verify_derived,
)
from explorer.views.view import LISTS, Panel, View
from model.config import ModelConfig

MAX_NEURON_BARS = 20
MAX_DOTS = 600  # of dots on the curve: it has no more pixels, and each dot takes the browser a tenth of a millisecond
# What leads to a hidden value: the feed-forward's purple and a grey, both pale; a legend shows no opacity of its own.
PALE, PALE_GREY = "rgba(176, 82, 192, 0.45)", "rgba(136, 136, 136, 0.45)"


def strongest_neuron_bars(trace: Trace, layer: int, chosen_neuron: int, query: int) -> go.Figure:
    """Draw the neurons that write most at a token, the strongest first, with each step of their computation.

    The chosen neuron comes last if it is not among them.
    """
    all_neurons = layer_neurons(trace, layer, query)
    neuron_ids, offsets = bar_neurons_and_offsets(all_neurons, chosen_neuron)
    name = ACTIVATIONS[trace.config.ffn][0]

    def qualify_formula(tap: str, formula: str) -> str:
        """Return a value's formula; it does not hold where the run has changed the value."""
        is_changed = active_interventions(trace, f"blocks.{layer}.ffn.{tap}")
        return _("{formula}, unless changed", formula=formula) if is_changed else formula

    if all_neurons.up is None:
        hidden = qualify_formula("hidden", _("hidden = {activation}(before)", activation=name))
        steps = [(_("before {activation}", activation=name), all_neurons.pre, PALE_GREY)]
    else:
        hidden = qualify_formula("hidden", _("hidden = gate × up"))
        steps = [
            (qualify_formula("gate", _("gate, after {activation}", activation=name)), all_neurons.active, PALE),
            ("up", all_neurons.up, PALE_GREY),
        ]
    steps.append((hidden, all_neurons.hidden, FEED_FORWARD))
    offset = offsets[neuron_ids.index(chosen_neuron)]
    return STRONGEST_FIGURE.draw(
        offsets=offsets,
        neurons=neuron_ids,
        steps=[
            {
                "step": step,
                "values": values[neuron_ids],
                "color": color,
                "hover": _("{step}: %{{y:.4g}}<br>writes a vector of length %{{text}}<extra></extra>", step=step)
                if values is all_neurons.hidden
                else f"{step}: %{{y:.4g}}<extra></extra>",
            }
            for step, values, color in steps
        ],
        lengths=[format_number(length) for length in all_neurons.output_norms[neuron_ids]],
        names=[str(n) for n in neuron_ids],
        layer=layer,
        count=trace.config.d_ff,
        token=quote_token(trace.tokens[query]),
        most=neuron_ids[0],
        value=format_number(all_neurons.hidden[neuron_ids[0]]),
        chosen=chosen_neuron,
        chosen_value=format_number(all_neurons.hidden[chosen_neuron]),
        frame=column_band(offset, width=2),
    ).set_meta(labelled_axis="x")


STRONGEST_FIGURE = FigureTemplate(
    alt=text(
        N_(
            "The neurons of layer {layer}, {count} in all, that write most at {token}: most is neuron {most}, with a "
            "hidden value of {value}; the chosen neuron {chosen} has {chosen_value}."
        )
    ),
    traces=[
        each(
            "steps",
            go.Bar(
                x=value("offsets"),
                y=value("values"),
                name=value("step"),
                customdata=value("neurons"),
                text=value("lengths"),
                textposition="none",
                marker={"color": value("color")},
                hovertemplate=value("hover"),
            ),
        )
    ],
    layout={
        "xaxis": {
            "title": {"text": text(N_("neuron, by the length of the vector it writes"))},
            "tickvals": value("offsets"),
            "ticktext": value("names"),
            "tickfont": {"family": MONO, "size": 11},
            "ticklabeloverflow": "allow",  # each is below its bars
            "showgrid": False,
        },
        "yaxis": {"title": {"text": text(N_("value"))}},
        "barmode": "group",
        "hovermode": "x",  # a short bar is hard to hit
        "legend": {"x": 0, "xanchor": "left"},
        "shapes": [value("frame")],
    },
)


def bar_neurons_and_offsets(all_neurons: LayerNeurons, chosen_neuron: int) -> tuple[list[int], list[int]]:
    """Return the ids of the neurons that have bars, and their offsets along the axis."""
    neuron_ids = all_neurons.top(MAX_NEURON_BARS).tolist()
    offsets = list(range(len(neuron_ids)))
    if chosen_neuron not in neuron_ids:
        neuron_ids.append(chosen_neuron)
        offsets.append(len(offsets) + 1)  # after a gap
    return neuron_ids, offsets


def activation_function_plot(trace: Trace, layer: int, chosen_neuron: int, query: int) -> go.Figure:
    """Draw every neuron at a token as a dot on the activation function; its size is the norm of what the neuron writes.

    Of very many neurons the visible ones are drawn: where dots overlap, the neuron that writes most.
    """
    all_neurons = layer_neurons(trace, layer, query)
    name, activation = ACTIVATIONS[trace.config.ffn]
    weights = "gate_proj" if all_neurons.up is not None else "up_proj"
    into = _("into {activation}: {weights}(x)<br>(larger dots write more)", activation=name, weights=weights)
    ends = min(-2.0, float(all_neurons.pre.min())), max(2.0, float(all_neurons.pre.max()))
    line = np.linspace(*ends, 241)
    write_norms = _finite(all_neurons.output_norms)  # NaN has size 0
    sizes = 4 + 12 * np.sqrt(write_norms / max(float(write_norms.max()), 1e-12))
    others = other_drawn_neurons(all_neurons, chosen_neuron)
    hides = _("where dots lie together, the largest is drawn") if len(others) + 1 < trace.config.d_ff else ""
    dots = (
        (others, _("the others"), FEED_FORWARD, sizes[others], 0.5),
        (np.array([chosen_neuron]), _("neuron {neuron}", neuron=chosen_neuron), SELECTED, 13, 1),
    )
    return CURVE_FIGURE.draw(
        line=line,
        curve=activation(line),
        dots=[
            {
                "before": all_neurons.pre[ids],
                "after": all_neurons.active[ids],
                "neurons": ids,
                "marker": {"color": color, "size": size, "opacity": opacity, "line": {"width": 0}},
                "name": name,
                "is_chosen": color == SELECTED,
            }
            for ids, name, color, size, opacity in dots
        ],
        title="<br>".join(filter(None, [into, hides])),
        count=trace.config.d_ff,
        token=quote_token(trace.tokens[query]),
        activation=name,
        above=(all_neurons.pre > 0).mean(),
        neuron=chosen_neuron,
        neuron_before=format_number(all_neurons.pre[chosen_neuron]),
        neuron_after=format_number(all_neurons.active[chosen_neuron]),
    )


CURVE_FIGURE = FigureTemplate(
    alt=text(
        N_(
            "{count} neurons at {token} on the curve of {activation}: {above:.0%} of them above 0; neuron {neuron} "
            "goes in as {before} and comes out as {after}."
        ),
        before="neuron_before",
        after="neuron_after",
    ),
    traces=[
        go.Scatter(
            x=value("line"),
            y=value("curve"),
            mode="lines",
            line={"color": RESIDUAL, "width": 1.5},
            name=value("activation"),
            hoverinfo="skip",
        ),
        each(
            "dots",
            go.Scatter(
                x=value("before"),
                y=value("after"),
                customdata=value("neurons"),
                mode="markers",
                marker=value("marker"),
                name=value("name"),
                hovertemplate=text(
                    N_("neuron %{{customdata}}<br>{activation}(%{{x:.4g}}) = %{{y:.4g}}<extra></extra>")
                ),
                showlegend=value("is_chosen"),
            ),
        ),
    ],
    layout={
        "xaxis": {"title": {"text": value("title")}, "zeroline": True},
        "yaxis": {"title": {"text": text(N_("out of {activation}"))}, "zeroline": True},
    },
)


def other_drawn_neurons(all_neurons: LayerNeurons, chosen_neuron: int) -> np.ndarray:
    """Return the neurons with dots besides the chosen one.

    All of them, or, of more than `MAX_DOTS`, the one that writes most in each of as many equal intervals of the
    pre-activation.
    """
    others = np.delete(np.arange(len(all_neurons.pre)), chosen_neuron)
    if len(others) <= MAX_DOTS:
        return others
    before, write_norms = _finite(all_neurons.pre)[others], _finite(all_neurons.output_norms)[others]
    fractions = (before - before.min()) / max(float(np.ptp(before)), 1e-12)  # 0 to 1
    bins = (fractions * MAX_DOTS).astype(int).clip(max=MAX_DOTS - 1)
    order = np.lexsort((write_norms, bins))
    is_last = np.append(np.diff(bins[order]) > 0, True)
    return np.sort(others[order[is_last]])


def _finite(values: np.ndarray) -> np.ndarray:
    return np.where(np.isfinite(values), values, 0)


def neuron_values_by_token_plot(trace: Trace, layer: int, chosen_neuron: int, query: int) -> go.Figure:
    """Draw the hidden value of one neuron at every token."""
    values = trace[f"blocks.{layer}.ffn.hidden"][:, chosen_neuron]  # (T,)
    labels = position_labels(trace.tokens)
    largest_position = int(np.abs(values).argmax())
    note = {"text": _("0 at every token: dead in this run"), "yref": "paper", "y": 0.75}
    return TOKENS_FIGURE.draw(
        labels=labels,
        values=values,
        colours=[SELECTED if i == query else FEED_FORWARD for i in range(len(values))],
        layer=layer,
        neuron=chosen_neuron,
        num_tokens=len(values),
        value=format_number(values[largest_position]),
        token=quote_token(trace.tokens[largest_position]),
        tokens=token_axis(trace.tokens, max_labels=32),
        frame=column_band(query),
        notes=[] if values.any() else [{"xref": "paper", "x": 0.5, "showarrow": False, **note}],
    )


TOKENS_FIGURE = FigureTemplate(
    alt=text(
        N_("Hidden value of layer {layer}’s neuron {neuron} at {tokens} tokens: furthest from 0, {value}, at {token}."),
        tokens="num_tokens",
    ),
    traces=[
        go.Bar(
            x=value("labels"),
            y=value("values"),
            marker={"color": value("colours")},
            hovertext=value("labels"),
            hovertemplate=text(N_("token %{hovertext}<br>hidden %{y:.4g}<extra></extra>")),
        )
    ],
    layout={
        "xaxis": extend("tokens", title={"text": text(N_("token of this text; for others, type another text"))}),
        "yaxis": {"title": {"text": text(N_("hidden value of neuron {neuron}"))}},
        "hovermode": "x",
        "shapes": [value("frame")],
        "annotations": value("notes"),
    },
)


# Labels of the values and of the neurons, and the alternative text.
NEAR_0 = (
    N_("hidden values near 0 (within {near:g} × RMS)"),
    N_("neurons near 0 at every token"),
    N_("By layer, hidden values near 0: {values}; neurons near 0 at all {tokens} tokens: {neurons}."),
)


EXACTLY_0 = (
    N_("hidden values exactly 0"),
    N_("neurons exactly 0 at every token (dead here)"),
    N_("By layer, hidden values exactly 0: {values}; neurons exactly 0 at all {tokens} tokens: {neurons}."),
)


def sparsity_by_layer_plot(trace: Trace, layer: int | None = None) -> go.Figure:
    """Draw the share of hidden values (near) 0 and of silent neurons in each layer; the chosen layer framed."""
    shares = sparsity(trace)
    exact = trace.config.ffn in RELU_KINDS
    values, silent, alt = EXACTLY_0 if exact else NEAR_0
    bars = (
        (translate(values, near=NEAR_ZERO_RATIO), shares.near_zero, FEED_FORWARD),
        (translate(silent), shares.inactive, RESIDUAL),
    )
    title = _("share") if exact else _("share<br>(dotted: a bell curve’s, {bell:.0%})", bell=NORMAL_SHARE)
    dotted = row_line(NORMAL_SHARE, dash="dot")
    return SPARSITY_FIGURE.draw(
        layers=np.arange(trace.config.num_layers),
        bars=[{"shares": values, "name": name, "color": color} for name, values, color in bars],
        alt=translate(
            alt,
            values=", ".join(f"{share:.0%}" for share in shares.near_zero),
            tokens=len(trace),
            neurons=", ".join(f"{share:.0%}" for share in shares.inactive),
        ),
        title=title,
        shapes=[*([] if exact else [dotted]), *([] if layer is None else [column_band(layer, width=2)])],
    )


SPARSITY_FIGURE = FigureTemplate(
    alt=value("alt"),
    traces=[
        each(
            "bars",
            go.Bar(
                x=value("layers"),
                y=value("shares"),
                name=value("name"),
                marker={"color": value("color")},
                hovertemplate=text(N_("layer %{{x}}<br>{name}: %{{y:.1%}}<extra></extra>")),
            ),
        )
    ],
    layout={
        "xaxis": {"title": {"text": text(N_("layer"))}, "dtick": 1, "showgrid": False},
        "yaxis": {"title": {"text": value("title")}, "range": [0, 1], "tickformat": ".0%"},
        "barmode": "group",
        "hovermode": "x",
        "shapes": value("shapes"),
    },
)


MAX_TOKENS_PER_SIDE = 10  # each way


def most_affected_tokens(logit_effects: np.ndarray) -> np.ndarray:
    """Return the ids of the tokens whose logits a neuron's effects (V,) raise and lower most, in descending order."""
    count = min(MAX_TOKENS_PER_SIDE, len(logit_effects) // 2)
    lowered = (
        len(logit_effects) - 1 - top_indices(-logit_effects[::-1], count)
    )  # ties: the last index, as in a full sort
    return np.concatenate([top_indices(logit_effects, count), lowered[::-1]])


def promoted_tokens(trace: Trace, layer: int, chosen_neuron: int, query: int) -> tuple[np.ndarray, np.ndarray, float]:
    """Return the tokens whose logits the neuron raises and lowers most in this run, in descending order.

    Also its effect on every logit per unit of the hidden value, (V,), and the hidden value. If that is 0, the tokens
    are those of a positive one.
    """
    unit_effects = neuron_logit_effects(trace, layer, chosen_neuron, query)
    hidden = float(trace[f"blocks.{layer}.ffn.hidden"][query, chosen_neuron])
    return most_affected_tokens(-unit_effects if hidden < 0 else unit_effects), unit_effects, hidden


def promoted_token_bars(trace: Trace, layer: int, chosen_neuron: int, query: int) -> go.Figure:
    """Draw the tokens whose logits the neuron raises and lowers most in this run."""
    token_ids, unit_effects, hidden = promoted_tokens(trace, layer, chosen_neuron, query)
    unit_effects = unit_effects[token_ids]
    num_raised = len(token_ids) // 2
    names = [trace.vocabulary[token_id] for token_id in token_ids]
    span = float(np.abs(hidden * unit_effects).max()) * 1.25 or 1.0  # leaves room for the written numbers
    return PROMOTED_FIGURE.draw(
        effects=hidden * unit_effects,
        rows=np.arange(len(token_ids)),
        hover=[
            _("{token}<br>{value} for each 1 of the hidden value", token=label(name), value=format_contribution(effect))
            for name, effect in zip(names, unit_effects, strict=True)
        ],
        written=[format_contribution(effect) for effect in hidden * unit_effects],
        labels=[label(name) for name in names],
        range=[len(token_ids) - 0.4, -0.6],
        span=[-span, span],
        neuron=chosen_neuron,
        layer=layer,
        raised=", ".join(quote_token(name) for name in names[:3]),
        lowered=", ".join(quote_token(name) for name in names[:-4:-1]),
        value=format_number(hidden),
        divider=row_line(num_raised - 0.5, dash="dot"),
    )


PROMOTED_FIGURE = FigureTemplate(
    alt=text(
        N_(
            "Neuron {neuron} of layer {layer} promotes {raised} most and suppresses {lowered}; hidden value here "
            "{value}."
        )
    ),
    traces=[
        go.Bar(
            x=value("effects"),
            y=value("rows"),
            orientation="h",
            text=value("written"),
            textposition="outside",
            textfont={"size": 11},
            cliponaxis=False,
            hovertext=value("hover"),
            marker={"color": FEED_FORWARD},
            hovertemplate=text(N_("%{hovertext}<br>adds %{x:.4g} here<extra></extra>")),
        )
    ],
    layout={
        "annotations": note_above(text(N_("With its hidden value in this run, {value}."))),
        "xaxis": {"title": {"text": text(N_("what it adds to the logit"))}, "range": value("span")},
        "yaxis": {
            "title": {"text": text(N_("token"))},
            "tickvals": value("rows"),
            "ticktext": value("labels"),
            "tickfont": {"family": MONO, "size": 11},
            "range": value("range"),
            "showgrid": False,
            "zeroline": False,
        },
        "shapes": [value("divider")],
    },
)


PLAIN = N_("before = {into_up} = {before}\nhidden = {name}(before) = {name}({before}) = {hidden}")
GATED = N_(
    "gate   = {name}({into_gate}) = {name}({before}) = {after}\nup     = {into_up} = {up}\n"
    "hidden = gate · up = {after} · {up_factor} = {hidden}"
)

RECOMPUTED = N_("recomputed from x and the weights, off by {error}")


def describe_neuron(trace: Trace, selection: Selection) -> str:
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
        before=format_six_digits(worked.pre),
        after=format_six_digits(worked.active),
        up=format_six_digits(worked.up or 0),
        up_factor=format_factor(worked.up or 0),
        hidden=format_six_digits(worked.hidden),
    )
    steps = ("gate_pre", "gate", "up", "hidden") if worked.up is not None else ("up", "hidden")
    names = [f"blocks.{layer}.ffn.{step}" for step in steps]
    off = describe_recomputation(trace, names, (query, chosen_neuron), RECOMPUTED, worked.error)
    return f"{head}\n{working}   {off}"


def feed_forward_sentence(trace: Trace, selection: Selection) -> str:
    """Return how long a vector the selected neuron writes at the query, and which neuron writes the longest."""
    output_norms = layer_neurons(trace, selection.layer, selection.query).output_norms
    largest = int(output_norms.argmax())
    template = WRITES_MOST if output_norms[selection.neuron] == output_norms[largest] else WRITES_LESS
    written = translate(
        WRITES_NOTHING if output_norms[largest] == 0 else template,
        layer=selection.layer,
        neuron=selection.neuron,
        query=quote_token(trace.tokens[selection.query]),
        count=trace.config.d_ff,
        norm=format_number(output_norms[selection.neuron]),
        most=largest,
        largest=format_number(output_norms[largest]),
    )
    return f"{written} {translate(NEXT_STEP)}"


NEXT_STEP = N_("Choose a neuron.")


WRITES_MOST = N_("Layer {layer}: neuron {neuron} of {count} writes most at {query}: length {norm}.")
WRITES_LESS = N_(
    "Layer {layer}: neuron {neuron} writes a vector of length {norm} at {query}; neuron {most} writes most ({largest})."
)
WRITES_NOTHING = N_("Layer {layer}: no neuron writes anything at {query}.")


def activation_tap_templates(config: ModelConfig) -> list[str]:
    """Return the taps of the activations, and of the value whose norm divides what each neuron writes."""
    steps, layout = ("gate_pre", "gate") * config.is_gated, block_layout(config)
    normalised = (value for norm, value in layout.norms.items() if norm == layout.writes["ffn"])
    return [f"blocks.{{layer}}.{name}" for name in (*(f"ffn.{step}" for step in (*steps, "up", "hidden")), *normalised)]


VERIFY_ACTIVATIONS = verify_captured(activation_tap_templates)


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
    step, neuron_id = get_item(steps, point.coordinate("curve")), get_item(neuron_ids, point.coordinate("item"))
    return derive_neuron(trace, selection.layer, neuron_id, selection.query, (step,))[0]


def inspect_neuron_dot(trace: Trace, selection: Selection, point: ClickedPoint) -> tuple[Derivation, ...]:
    """Derive a neuron's value before and after its activation function."""
    dots = {
        1: other_drawn_neurons(layer_neurons(trace, selection.layer, selection.query), selection.neuron).tolist(),
        2: [selection.neuron],
    }
    neuron_id = get_item(dots.get(point.coordinate("curve"), []), point.coordinate("item"))
    taps = ("gate_pre", "gate") if trace.config.is_gated else ("up", "hidden")
    return derive_neuron(trace, selection.layer, neuron_id, selection.query, taps)


def inspect_logit_effect(trace: Trace, selection: Selection, point: ClickedPoint) -> Derivation:
    """Derive the clicked logit effect of the selected neuron."""
    token_ids, _unit_effects, _hidden = promoted_tokens(trace, selection.layer, selection.neuron, selection.query)
    token_id = int(get_item(token_ids, point.coordinate("item")))
    return neuron_logit_effect(trace, selection.layer, selection.neuron, selection.query, token_id)


VIEW = View(
    name="feed_forward",
    title=N_("Feed-forward"),
    group="components",
    order=60,
    description=N_("Each neuron reads one token and gives a number: how much of its output vector it adds."),
    sentence=feed_forward_sentence,
    formula=describe_neuron,
    required_taps=("blocks.*.ffn.hidden", "blocks.*.ffn.up"),
    unavailable_message=lambda config: _("This model has no feed-forward."),
    controls=("layer", "neuron", "query", "target", "rival"),
    intervention_controls=(NEURON_OFF, NEURON, GATE, HIDDEN),
    code=("blocks.{layer}.ffn", "blocks.{layer}.ffn_norm"),
    code_lines=("self.hidden(",),
    panels=(
        Panel(
            name="strongest",
            template=STRONGEST_FIGURE,
            no_difference_reason=LISTS,
            title=N_("The neurons that write most at the chosen token"),
            heading=N_("Layer {layer}: strongest neurons at {query}"),
            draw=lambda trace, s: strongest_neuron_bars(trace, s.layer, s.neuron, s.query),
            inspect=inspect_neuron_bar,
            click_selects={"customdata": "neuron"},
            verify=VERIFY_ACTIVATIONS,
            height=320,
            min_width=600,
        ),
        Panel(
            name="curve",
            template=CURVE_FIGURE,
            no_difference_reason=LISTS,
            title=N_("All neurons, on the activation function"),
            heading=N_("Layer {layer}: all neurons at {query}"),
            draw=lambda trace, s: activation_function_plot(trace, s.layer, s.neuron, s.query),
            inspect=inspect_neuron_dot,
            click_selects={"customdata": "neuron"},
            verify=VERIFY_ACTIVATIONS,
            height=460,
            width="half",
        ),
        Panel(
            name="promoted",
            template=PROMOTED_FIGURE,
            no_difference_reason=LISTS,
            title=N_("Tokens that the neuron pushes up and down"),
            heading=N_("Tokens that neuron {neuron} pushes up and down"),
            draw=lambda trace, s: promoted_token_bars(trace, s.layer, s.neuron, s.query),
            inspect=inspect_logit_effect,
            verify=verify_promoted_tokens,
            height=460,
            width="half",
        ),
        NEURONS_OF_ALL_LAYERS,
        Panel(
            name="tokens",
            template=TOKENS_FIGURE,
            title=N_("The chosen neuron’s value at each token"),
            heading=N_("Layer {layer} neuron {neuron}: its value at each token"),
            draw=lambda trace, s: neuron_values_by_token_plot(trace, s.layer, s.neuron, s.query),
            click_selects={"x": "query"},
            verify=verify_captured("blocks.{layer}.ffn.hidden"),
            inspect=inspect_captured("blocks.{layer}.ffn.hidden", "x", "neuron"),
            height=320,
            width="half",
        ),
        Panel(
            name="layers",
            template=SPARSITY_FIGURE,
            title=N_("Sparsity: how many values do next to nothing"),
            draw=lambda trace, s: sparsity_by_layer_plot(trace, s.layer),
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
