"""Figures of effects: of ablating each head and sublayer, of the interventions, each and together, and compensation."""

from collections.abc import Sequence

import numpy as np

from explorer.analysis.direct_logit_attribution import direct_logit_attribution, head_contribution_change
from explorer.analysis.intervention_effects import (
    MEASURED,
    ablation_effects,
    attention_shift,
    check_recomputed_logits,
    comparison_rounding_threshold,
    interaction_effect,
    intervention_interaction,
    joint_effect,
    single_effect,
    summed_effect,
)
from explorer.analysis.residual import sublayer_labels
from explorer.explain.derivation import ClickedPoint, Derivation, get_item, rounding_threshold
from explorer.explain.notation import format_contribution, format_number, quote_token, token_formatter
from explorer.interventions import Intervention
from explorer.state.selection import Selection
from explorer.tracing.comparison import Comparison
from explorer.tracing.trace import Trace
from explorer.translations import N_, _, translate
from explorer.views import graph_objects as go
from explorer.views.labels import logit_label, target_and_contrast, target_token
from explorer.views.run_difference_figures import annotate_alike, describe_interventions, format_difference
from explorer.views.shared_plots import head_map
from explorer.views.style import ATTENTION, FEED_FORWARD, SELECTED, figure, label, named_axis, row_line
from explorer.views.verification import verify_comparison

ABLATIONS = {"zero": N_("to 0"), "mean": N_("to its mean")}  # what an ablated component is set to


def head_ablation_map(
    trace: Trace,
    query: int,
    token_id: int,
    layer: int | None = None,
    head: int = 0,
    interventions: Sequence[Intervention] = (),
    operation: str = "zero",
) -> go.Figure:
    """Draw the effect of ablating each head on a token's log-probability after the query, in bits; row = layer.

    Args:
        interventions: of the run: the ablated heads among them are marked.
        operation: what a head is set to, one of `ABLATIONS`.
    """
    effects = ablation_effects(trace, query, token_id, operation=operation)
    values = effects.heads  # (L, H)
    limit, largest = rounding_threshold(trace.dtype) * max(1.0, -effects.before), float(np.abs(values).max())
    is_negligible, baseline_text = largest <= limit, format_number(2**effects.before)
    largest_index = np.unravel_index(np.abs(values).argmax(), values.shape)
    colour_end, scale = largest, _("bits, ablated")
    next_largest = float(np.sort(np.abs(values), axis=None)[-2:][0])
    if limit < next_largest < largest / 2:  # one head would leave all others without colour
        colour_end, scale = next_largest, _("bits, ablated (colours end at {end})", end=format_number(next_largest))
    fig = head_map(
        values,
        None if layer is None else (layer, head),
        colours=(-1, 1) if is_negligible else (-colour_end, colour_end),
        scale=scale,
        hover=_(
            "layer %{{y}} head %{{x}} ablated<br>%{{text}} bits<br>probability {before} → %{{customdata:.3g}}"
            "<extra></extra>",
            before=baseline_text,
        ),
        customdata=2 ** (effects.before + values),
        alt=_(
            "Change of the probability of {token} after {query}, {probability}, when each of {heads} heads is ablated "
            "alone ({operation}): most by layer {layer} head {head}, {bits} bits.",
            operation=translate(ABLATIONS[operation]),
            token=quote_token(trace.vocabulary[token_id]),
            query=quote_token(trace.tokens[query]),
            probability=baseline_text,
            heads=values.size,
            layer=largest_index[0],
            head=largest_index[1],
            bits=format_contribution(values[largest_index]),
        ),
    )
    texts = [
        [f"blocks.{row}.attn.z.{column}*{operation}" for column in range(values.shape[1])] for row in range(len(values))
    ]
    for intervention in interventions:
        for row, column in zip(*np.nonzero(np.array(texts) == str(intervention)), strict=True):
            corners = {"x0": column - 0.4, "x1": column + 0.4, "y0": row - 0.4, "y1": row + 0.4}
            fig.add_shape(type="rect", **corners, line={"color": SELECTED, "width": 2, "dash": "dot"})
    if is_negligible:
        annotate_alike(fig, trace.dtype, limit, N_("{value} bits"))
    return fig.set_click_interventions(texts)


def sublayer_ablation_bars(trace: Trace, query: int, token_id: int, operation: str = "zero") -> go.Figure:
    """Draw the effect of ablating all heads of a layer, or its feed-forward, on a token's log-probability, in bits.

    Args:
        operation: what they are set to, one of `ABLATIONS`.
    """
    effects = ablation_effects(trace, query, token_id, operation=operation)
    values = effects.sublayers.ravel()  # (2 L,)
    names = sublayer_labels(trace.config)
    chance = format_number(2**effects.before)
    largest_index = int(np.abs(values).argmax())
    layers = range(len(effects.sublayers))
    texts = [f"blocks.{layer}.{value}*{operation}" for layer in layers for value in ("attn.z", "ffn.hidden")]
    return figure(
        go.Bar(
            x=np.arange(len(names)),
            y=values,
            customdata=np.arange(len(names)) // 2,
            text=[
                _(
                    "{part} ablated: {bits} bits<br>probability {before} → {after}",
                    part=name,
                    bits=format_contribution(value),
                    before=chance,
                    after=format_number(2 ** (effects.before + value)),
                )
                for name, value in zip(names, values, strict=True)
            ],
            textposition="none",
            marker={"color": [ATTENTION, FEED_FORWARD] * len(effects.sublayers)},
            hovertemplate="%{text}<extra></extra>",
        ),
        alt=_(
            "Change of the probability of {token} after {query}, {probability}, when each sublayer is ablated alone "
            "({operation}): most by {part}, {bits} bits.",
            operation=translate(ABLATIONS[operation]),
            token=quote_token(trace.vocabulary[token_id]),
            query=quote_token(trace.tokens[query]),
            probability=chance,
            part=names[largest_index],
            bits=format_contribution(values[largest_index]),
        ),
        xaxis={
            "title": {"text": _("layer (blue: its heads ablated, purple: its feed-forward)")},
            "tickvals": [2 * layer + 0.5 for layer in layers],
            "ticktext": [str(layer) for layer in layers],
            "showgrid": False,
        },
        yaxis={"title": {"text": _("change of log₂ probability, bits")}},
        hovermode="x",  # a short bar is hard to hit
    ).set_click_interventions(texts)


def attention_shift_map(comparison: Comparison, layer: int | None = None, head: int = 0) -> go.Figure:
    """Draw the share of every head's attention that moved; row = layer."""
    values = attention_shift(comparison)  # (L, H)
    largest_index, limit = np.unravel_index(values.argmax(), values.shape), comparison_rounding_threshold(comparison)
    fig = head_map(
        values,
        None if layer is None else (layer, head),
        colours=(0, float(values.max()) if values.max() > limit else 1.0),
        scale=_("share of attention moved"),
        hover=_("layer %{y} head %{x}<br>%{z:.3g} of its attention moved<extra></extra>"),
        format_cell="{:.2f}".format,
        alt=_(
            "Share of each head’s attention that went to other tokens by {changes}: most, {share}, of layer {layer} "
            "head {head}.",
            changes=describe_interventions(comparison.trace),
            share=format_difference(values[largest_index], limit, comparison.trace.dtype),
            layer=largest_index[0],
            head=largest_index[1],
        ),
    )
    return annotate_alike(fig, comparison.trace.dtype, limit) if values.max() <= limit else fig


# bars after the single effects: axis label, description, derivation
TOTALS = (
    (N_("sum"), N_("the sum of the single effects"), summed_effect),
    (N_("together"), N_("all together"), joint_effect),
    (N_("together − sum"), N_("all together less the sum"), interaction_effect),
)


def combined_effects_bars(comparison: Comparison, query: int, token_id: int, measure: str) -> go.Figure:
    """Draw the effect of each intervention by itself on a token's "logit" or "probability", and their interaction.

    The last bars are the sum of the single effects, the joint effect, and the difference of the two.
    """
    trace, interaction = comparison.trace, intervention_interaction(comparison, query, token_id, measure)
    values = np.array([*interaction.effects, interaction.sum, interaction.joint, interaction.interaction])
    descriptions, last = (
        [intervention.describe(trace.config, token_formatter(trace)) for intervention in trace.edits],
        values[-len(TOTALS) :],
    )
    before, after = format_number(interaction.before), format_number(interaction.joint_value)
    hover_texts = [
        f"{label(description, max_chars=60)}: {format_number(effect)}<br>{before} → {format_number(single_value)}"
        for description, effect, single_value in zip(
            descriptions, interaction.effects, interaction.single_values, strict=True
        )
    ]
    hover_texts += [
        f"{translate(template)}: {format_number(value)}"
        for (_name, template, _of), value in zip(TOTALS, last, strict=True)
    ]
    return figure(
        go.Bar(
            x=values,
            y=np.arange(len(values)),
            orientation="h",
            text=hover_texts,
            textposition="none",
            hovertemplate="%{text}<extra></extra>",
        ),
        alt=translate(
            SHOWN[measure],
            count=len(descriptions),
            token=quote_token(trace.vocabulary[token_id]),
            query=quote_token(trace.tokens[query]),
            sum=format_number(interaction.sum),
            joint=format_number(interaction.joint),
            before=before,
            after=after,
        ),
        xaxis={
            "title": {
                "text": _(
                    "{change}: sum {sum}, together {joint}<br>({before} → {after})",
                    change=translate(MEASURED[measure]),
                    sum=format_number(interaction.sum),
                    joint=format_number(interaction.joint),
                    before=before,
                    after=after,
                ),
            },
        },
        yaxis=named_axis(
            [
                *(label(description, max_chars=28) for description in descriptions),
                *(translate(name) for name, *_rest in TOTALS),
            ],
            autorange="reversed",
        ),
        hovermode="y",  # a short bar is hard to hit
        shapes=[row_line(len(descriptions) - 0.5, dash="dot")],
    )


SHOWN = {
    "logit": N_(
        "What {count} changes do to the logit of {token} after {query}: one by one {sum} in sum, all together {joint}, "
        "from {before} to {after}."
    ),
    "probability": N_(
        "What {count} changes do to the probability of {token} after {query}: one by one {sum} in sum, all together "
        "{joint}, from {before} to {after}."
    ),
}


def inspect_combined_effect(
    comparison: Comparison, query: int, token_id: int, measure: str, point: ClickedPoint
) -> Derivation:
    """Derive the clicked effect of one intervention, or of all together."""
    index, count = point.coordinate("item"), len(comparison.trace.edits)
    if index < count:
        return single_effect(comparison, query, token_id, measure, index)
    return get_item(TOTALS, index - count)[2](comparison, query, token_id, measure)


AGAIN = (
    N_("logit and ln p, run again with all changes and with none, against the captured logits"),
    lambda runs, s: check_recomputed_logits(runs, s.query, target_token(runs.trace, s)),
)


MARK_OF_TOGETHER = verify_comparison("logits", against=AGAIN)


def head_compensation_map(comparison: Comparison, selection: Selection) -> go.Figure:
    """Draw the change of every head's contribution to the target token's logit by the interventions; row = layer.

    The colour scale ends at the largest change of a head that still contributes: an ablated head would dominate
    it.
    """
    trace, query = comparison.trace, selection.query
    token_id, contrast_id = target_and_contrast(trace, selection)
    after, before = (
        direct_logit_attribution(run, query, token_id, contrast_id).heads for run in comparison.runs
    )  # (L, H)
    values = after - before
    others = np.where(after == 0, 0, values)
    largest = float(np.abs(others).max()) or 1.0
    largest_index = np.unravel_index(others.argmax(), others.shape)
    return head_map(
        values,
        (selection.layer, selection.head),
        colours=(-largest, largest),
        scale=_("adds more, or less"),
        hover=_(
            "layer %{y} head %{x}<br>adds %{customdata[1]:.4f}, unchanged %{customdata[0]:.4f}<br>%{z:+.4f}"
            "<extra></extra>"
        ),
        customdata=np.stack((before, after), axis=-1),
        alt=_(
            "By how much more or less {heads} heads add to {logit} after {token} than in the unchanged run: of those "
            "that still add anything most gained {gain}, layer {layer} head {head}.",
            heads=values.size,
            logit=logit_label(trace, token_id, contrast_id),
            token=quote_token(trace.tokens[query]),
            gain=format_number(others[largest_index]),
            layer=largest_index[0],
            head=largest_index[1],
        ),
    )


def inspect_head_compensation(comparison: Comparison, selection: Selection, point: ClickedPoint) -> Derivation:
    """Derive the clicked head's change of contribution under the interventions."""
    return head_contribution_change(
        comparison, selection.query, *target_and_contrast(comparison.trace, selection), point.row, point.column
    )
