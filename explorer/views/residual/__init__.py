"""Residual stream view: the vector of a token that every layer reads and adds to."""

import numpy as np

from explorer.analysis.residual import (
    has_residual_stages,
    layernorm_mean,
    median_residual_norm,
    norm_divisor,
    norm_statistics_in_layer,
    outlier_ratio,
    residual_norm,
    residual_norms_by_stage,
    stage_cosine,
    sublayer_output_cosine,
    sublayer_output_norm,
    sublayer_updates,
    unnormed_stage_residual_norm,
)
from explorer.architecture.residual_stream import (
    block_layout,
    norms_in_layer,
    norms_on_residual_stream,
    residual_sum_taps,
    stream_tap_patterns,
)
from explorer.explain.captured import derive
from explorer.explain.derivation import ClickedPoint, Derivation, get_item
from explorer.explain.notation import format_number, format_six_digits, join_names, quote_token
from explorer.state.selection import Selection
from explorer.tracing.trace import Trace
from explorer.translations import N_, _, translate
from explorer.views.intervention_controls import NORMS, PATCH_STREAM, REMOVE_TOKEN_DIRECTION, STEER_TO_TOKEN
from explorer.views.residual.stream_plots import (
    DIRECTIONS_FIGURE,
    GAINS_FIGURE,
    LENGTHS_FIGURE,
    NORMALISED_FIGURE,
    NORMS_FIGURE,
    OUTLIERS_FIGURE,
    SCALES_FIGURE,
    SIMILARITY_FIGURE,
    divisor_line_specs,
    norm_divisor_plot,
    norm_gain_lines,
    norm_input_output_plot,
    outlier_dimension_plot,
    stage_cosine_map,
    stream_norm_map,
    stream_norm_plot,
    update_cosine_plot,
)
from explorer.views.verification import Verification, make_unverified, verify_captured, verify_derived
from explorer.views.view import Panel, View
from model.config import ModelConfig


def describe_stream_norms(trace: Trace, selection: Selection) -> str:
    """Return the norms and updates of the selected token's stream, in numbers."""
    layer, query = selection.layer, selection.query
    epsilon = f"{trace.config.norm_eps:g}".replace("-", "−")
    layernorm = trace.config.norm == "layernorm"
    norm_formula = _("LayerNorm(x) = (x − mean x) / σ · γ + β") if layernorm else "RMSNorm(x) = x / RMS · g"
    token = quote_token(trace.tokens[query])
    if not trace.has_weights:
        size = format_number(np.linalg.norm(trace[f"blocks.{layer}.resid_post"][query]))
        template = N_("layer {layer}, {token} ({position}): ‖x‖₂ = {length}")
        return translate(template, layer=layer, token=token, position=query, length=size)
    lines = [
        _("layer {layer}, {token} ({position}); {norm}", layer=layer, token=token, position=query, norm=norm_formula)
    ]
    for reading in norm_statistics_in_layer(trace, layer):
        scale = float(reading.scales[query])
        divisor_text = translate(
            DIVISOR_TEXTS[reading.kinds[query]],
            mean=format_six_digits(reading.means[query]),
            square=format_six_digits(scale**2 - trace.config.norm_eps),
            epsilon=epsilon,
            scale=format_six_digits(scale),
        )
        line = _(
            "{norm} of x = {value}: {divided}   recomputed, off by {error}",
            norm=reading.name.split(".")[-1],
            value=reading.before.split(".")[-1],
            divided=divisor_text,
            error=format_number(reading.error),
        )
        lines.append(line)
    stream_updates = sublayer_updates(trace, query)
    sums = len(residual_sum_taps(trace.config))
    lines.append(
        translate(
            SUM_TEXTS[bool(norms_on_residual_stream(trace.config))],
            sums=sums,
            error=format_number(stream_updates.error),
        )
    )
    return "\n".join(lines)


def residual_sentence(trace: Trace, selection: Selection) -> str:
    """Return the norm of the query's stream at the start and the end, and the sublayer that adds most."""
    norms = residual_norms_by_stage(trace)[:, selection.query]
    fields = {
        "token": quote_token(trace.tokens[selection.query]),
        "first": format_number(norms[0]),
        "last": format_number(norms[-1]),
    }
    if all(trace.has_tap(f"blocks.*.{sublayer}.out") for sublayer in ("attn", "ffn")):
        updates = sublayer_updates(trace, selection.query)
        layer, is_ffn = divmod(int(updates.norms.argmax()), 2)
        template = FEED_FORWARD_ADDS_MOST if is_ffn else ATTENTION_ADDS_MOST
        length = translate(template, layer=layer, added=format_number(updates.norms.max()), **fields)
    else:
        length = _("The stream of {token} goes from length {first} to {last}.", **fields)
    return f"{length} {translate(NEXT_STEP)}"


NEXT_STEP = N_("Choose a token or layer.")


ATTENTION_ADDS_MOST = N_(
    "The stream of {token} goes from length {first} to {last}; the attention of layer {layer} adds most ({added})."
)
FEED_FORWARD_ADDS_MOST = N_(
    "The stream of {token} goes from length {first} to {last}; the feed-forward of layer {layer} adds most ({added})."
)


DIVISOR_TEXTS = {
    "layernorm": N_("mean x = {mean}, σ = √(var x + ε) = √({square} + {epsilon}) = {scale}"),
    "none": N_("nothing is divided: its kind was changed"),
    "rmsnorm": N_("RMS = √(mean x² + ε) = √({square} + {epsilon}) = {scale}"),
}
SUM_TEXTS = {  # by whether norms are on the stream
    False: N_("stream + what is added: {sums} sums at this token, off by {error}"),
    True: N_("stream + what is added (before each norm): {sums} sums at this token, off by {error}"),
}


def update_tap_patterns(config: ModelConfig) -> list[str]:
    """Return the taps of what each sublayer adds, with * for every layer."""
    return [f"blocks.*.{name}" for name in block_layout(config).writes.values()]


def norm_tap_templates(config: ModelConfig) -> list[str]:
    """Return the taps of the inputs and outputs of the chosen layer's norms."""
    norms = block_layout(config).norms
    return [f"blocks.{{layer}}.{name}" for name in dict.fromkeys((*norms.values(), *norms))]


VERIFY_STAGES = verify_derived(stream_tap_patterns)
VERIFY_UPDATES = verify_derived(stream_tap_patterns, update_tap_patterns)
VERIFY_NORMS = verify_captured(norm_tap_templates)


def verify_gains(trace: Trace, selection: Selection) -> Verification:
    """Return that a layer's gains are weights, with nothing to verify."""
    norms = join_names(f"{norm}.weight" for norm in norms_in_layer(trace.config, selection.layer))
    return make_unverified(N_("weights as learned"), norms)(trace, selection)


def inspect_stream_norm(trace: Trace, selection: Selection, point: ClickedPoint) -> Derivation:
    """Derive a norm: of the stream (lines) or of what is added (bars)."""
    curve, item = point.coordinate("curve"), point.coordinate("item")
    if curve == 0:
        return median_residual_norm(trace, item)
    return (
        unnormed_stage_residual_norm(trace, item, selection.query)
        if curve == 1
        else sublayer_output_norm(trace, item, selection.query)
    )


def inspect_norm_divisor(trace: Trace, selection: Selection, point: ClickedPoint) -> Derivation:
    """Derive the clicked divisor or mean of a norm."""
    norm, is_mean = get_item(divisor_line_specs(trace, selection.layer), point.coordinate("curve"))
    return (layernorm_mean if is_mean else norm_divisor)(trace, norm, point.coordinate("item"))


def inspect_norm_input_output(trace: Trace, selection: Selection, point: ClickedPoint) -> Derivation:
    """Derive the clicked element before or after a norm."""
    norm, is_after = divmod(point.coordinate("curve"), 2)
    reading = get_item(norm_statistics_in_layer(trace, selection.layer), norm)
    return derive(trace, reading.name if is_after else reading.before, (selection.query, point.coordinate("item")))


def has_norm_weights(trace: Trace) -> bool:
    """Return whether the run has the model's weights."""
    return trace.has_weights


VIEW = View(
    name="residual",
    title=N_("Residual stream"),
    group="components",
    order=70,
    description=N_(
        "One vector per token runs through the whole model; attention and feed-forward read it and add to it. Choose "
        "a token or layer."
    ),
    sentence=residual_sentence,
    formula=describe_stream_norms,
    required_taps=("blocks.*.resid_post",),
    condition=has_residual_stages,
    unavailable_message=lambda config: _("Nothing was captured from this model."),
    controls=("layer", "query"),
    intervention_controls=(STEER_TO_TOKEN, REMOVE_TOKEN_DIRECTION, PATCH_STREAM, *NORMS),
    code=("blocks.{layer}", "blocks.{layer}.attn_norm"),
    code_lines=("self.resid_post(",),
    panels=(
        Panel(
            name="lengths",
            template=LENGTHS_FIGURE,
            title=N_("The stream’s length, stage by stage"),
            draw=lambda trace, s: stream_norm_map(trace, s.query),
            click_selects={"x": "query", "customdata": "layer"},
            verify=VERIFY_STAGES,
            inspect=lambda trace, s, point: residual_norm(trace, point.row, point.column),
            height=400,
        ),
        Panel(
            name="norms",
            template=NORMS_FIGURE,
            title=N_("The chosen token, and what each sublayer adds"),
            heading=N_("{query}: its length, and what each sublayer adds"),
            draw=lambda trace, s: stream_norm_plot(trace, s.query),
            required_taps=("blocks.*.attn.out", "blocks.*.ffn.out"),
            inspect=inspect_stream_norm,
            verify=VERIFY_UPDATES,
            height=340,
            width="half",
        ),
        Panel(
            name="directions",
            template=DIRECTIONS_FIGURE,
            title=N_("Which way it adds: along, across or against"),
            draw=lambda trace, s: update_cosine_plot(trace, s.query),
            required_taps=("blocks.*.attn.out", "blocks.*.ffn.out"),
            inspect=lambda trace, s, point: sublayer_output_cosine(trace, point.coordinate("item"), s.query),
            click_selects={"customdata": "layer"},
            verify=VERIFY_UPDATES,
            height=340,
            width="half",
        ),
        Panel(
            name="scales",
            template=SCALES_FIGURE,
            title=N_("What the chosen layer’s norms divide by"),
            heading=N_("What the norms of layer {layer} divide by"),
            draw=lambda trace, s: norm_divisor_plot(trace, s.layer, s.query),
            condition=has_norm_weights,
            inspect=inspect_norm_divisor,
            click_selects={"x": "query"},
            verify=VERIFY_NORMS,
            height=340,
            width="half",
        ),
        Panel(
            name="gains",
            template=GAINS_FIGURE,
            title=N_("What the norms multiply by after: the gains"),
            draw=lambda trace, s: norm_gain_lines(trace, s.layer),
            condition=has_norm_weights,
            no_inspection=N_("weights as they were learned: no other number gives them"),
            verify=verify_gains,
            height=340,
            width="half",
        ),
        Panel(
            name="normalised",
            template=NORMALISED_FIGURE,
            title=N_("The token’s numbers before and after the norms"),
            heading=N_("{query} before and after the norms of layer {layer}"),
            draw=lambda trace, s: norm_input_output_plot(trace, s.layer, s.query),
            condition=has_norm_weights,
            inspect=inspect_norm_input_output,
            verify=VERIFY_NORMS,
            height=420,
        ),
        Panel(
            name="similarity",
            template=SIMILARITY_FIGURE,
            title=N_("How the chosen token’s direction changes"),
            heading=N_("How the direction of {query} changes"),
            draw=lambda trace, s: stage_cosine_map(trace, s.query),
            click_selects={"customdata": "layer"},
            verify=VERIFY_STAGES,
            inspect=lambda trace, s, point: stage_cosine(trace, s.query, point.row, point.column),
            height=460,
            width="half",
        ),
        Panel(
            name="outliers",
            template=OUTLIERS_FIGURE,
            title=N_("Outlier dimensions: the largest mean |value|"),
            draw=lambda trace, s: outlier_dimension_plot(trace),
            is_selection_independent=True,
            click_selects={"customdata": "layer"},
            verify=VERIFY_STAGES,
            inspect=lambda trace, s, point: outlier_ratio(trace, point.row, point.column),
            height=460,
            width="half",
        ),
    ),
)
