"""Figures of effects: of ablating each head and sublayer, of the interventions, each and together, and compensation."""

from collections.abc import Sequence

import numpy as np

from explorer.analysis.direct_logit_attribution import (
    LogitAttribution,
    component_contribution_change,
    direct_logit_attribution,
    has_intervention_additions,
    head_contribution_change,
    logit_components,
)
from explorer.analysis.intervention_effects import (
    MEASURED,
    ablation_effects,
    attention_shift,
    check_recomputed_logits,
    comparison_rounding_threshold,
    interaction_effect,
    intervention_interaction,
    joint_effect,
    relative_stream_change,
    single_effect,
    summed_effect,
    surprisal_change,
)
from explorer.analysis.next_token import surprisal
from explorer.analysis.residual import compute_norm_divisor, residual_stages, sublayer_labels
from explorer.architecture.residual_stream import has_final_norm, norm_input_tap
from explorer.errors import PointNotFoundError
from explorer.explain.derivation import ClickedPoint, Derivation, get_item, rounding_threshold
from explorer.explain.notation import format_contribution, format_number, quote_token, token_formatter
from explorer.interventions import Intervention
from explorer.state.selection import Selection
from explorer.tracing.comparison import Comparison
from explorer.tracing.trace import Trace
from explorer.translations import N_, _, translate
from explorer.views import graph_objects as go
from explorer.views.intervention_effects import (
    annotate_empty,
    describe_interventions,
    format_difference,
    format_largest_difference,
)
from explorer.views.labels import logit_label, target_and_contrast, target_token
from explorer.views.shared_plots import component_bar_data
from explorer.views.style import (
    ATTENTION,
    FEED_FORWARD,
    SELECTED,
    click_layers,
    figure,
    frame_head,
    head_map_axes,
    label,
    note_above,
    position_labels,
    stage_axis,
    token_axis,
)
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
    fig = figure(
        go.Heatmap(
            z=values,
            zmin=-1 if is_negligible else -colour_end,
            zmax=1 if is_negligible else colour_end,
            text=[[format_contribution(value) for value in row] for row in values],
            customdata=2 ** (effects.before + values),
            texttemplate="%{text}" if values.shape[1] <= 12 else None,
            hovertemplate=_(
                "layer %{{y}} head %{{x}} ablated<br>%{{text}} bits<br>probability {before} → %{{customdata:.3g}}"
                "<extra></extra>",
                before=baseline_text,
            ),
            xgap=1,
            ygap=1,
            colorbar={"title": {"text": scale, "side": "right"}},
        ),
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
        **head_map_axes(),
    )
    if layer is not None:
        frame_head(fig, layer, head)
    texts = [
        [f"blocks.{row}.attn.z.{column}*{operation}" for column in range(values.shape[1])] for row in range(len(values))
    ]
    for intervention in interventions:
        for row, column in zip(*np.nonzero(np.array(texts) == str(intervention)), strict=True):
            corners = {"x0": column - 0.4, "x1": column + 0.4, "y0": row - 0.4, "y1": row + 0.4}
            fig.add_shape(type="rect", **corners, line={"color": SELECTED, "width": 2, "dash": "dot"})
    if is_negligible:
        alike = _(
            "with any head ablated it is as likely, as far as {dtype} can tell ({limit} bits)",
            dtype=trace.dtype,
            limit=format_number(limit),
        )
        annotate_empty(fig, alike)
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


MAX_RELATIVE_CHANGE = 1.0  # end of the colour scale, as a fraction of the stream's norm


def residual_change_map(comparison: Comparison, query: int | None = None) -> go.Figure:
    """Draw the relative change of every token's (column) residual stream at every stage (row)."""
    trace = comparison.trace
    stage_list, values = residual_stages(trace), relative_stream_change(comparison)  # (S, T)
    largest, limit = float(values.max()), comparison_rounding_threshold(comparison)
    measure = _("× its length (larger ones alike)") if largest > MAX_RELATIVE_CHANGE else _("× its length")
    fig = figure(
        go.Heatmap(
            x=position_labels(trace.tokens),
            y=[stage.name for stage in stage_list],
            z=values,
            zmin=0,
            zmax=min(largest, MAX_RELATIVE_CHANGE) if largest > limit else MAX_RELATIVE_CHANGE,
            customdata=click_layers(stage_list, len(trace)),
            hovertemplate=_("token %{x}, stream at %{y}<br>moved by %{z:.3g} × its length<extra></extra>"),
            colorbar={"title": {"text": measure, "side": "right"}},
        ),
        alt=_(
            "How far {changes} moved the residual stream of {tokens} tokens at {stages} stages: by {most} times its "
            "length; in the end most at {token}.",
            changes=describe_interventions(comparison.trace),
            tokens=len(trace),
            stages=len(stage_list),
            most=format_largest_difference(largest, limit, trace.dtype),
            token=quote_token(trace.tokens[values[-1].argmax()]),
        ),
        xaxis={**token_axis(trace.tokens, _("token"), max_labels=32)},
        yaxis=stage_axis(stage_list),
    )
    if query is not None:
        fig.add_vrect(query - 0.5, query + 0.5, line={"color": SELECTED, "width": 2})
    if largest <= limit:
        none = _(
            "no vector moves as far as {dtype} can tell ({limit} × its length)",
            dtype=trace.dtype,
            limit=format_number(limit),
        )
        annotate_empty(fig, none)
    return fig


def attention_shift_map(comparison: Comparison, layer: int | None = None, head: int = 0) -> go.Figure:
    """Draw the share of every head's attention that moved; row = layer."""
    values = attention_shift(comparison)  # (L, H)
    largest_index, limit = np.unravel_index(values.argmax(), values.shape), comparison_rounding_threshold(comparison)
    fig = figure(
        go.Heatmap(
            z=values,
            zmin=0,
            zmax=float(values.max()) if values.max() > limit else 1.0,
            text=[[f"{value:.2f}" for value in row] for row in values],
            texttemplate="%{text}" if values.shape[1] <= 12 else None,
            hovertemplate=_("layer %{y} head %{x}<br>%{z:.3g} of its attention moved<extra></extra>"),
            xgap=1,
            ygap=1,
            colorbar={"title": {"text": _("share of attention moved"), "side": "right"}},
        ),
        alt=_(
            "Share of each head’s attention that went to other tokens by {changes}: most, {share}, of layer {layer} "
            "head {head}.",
            changes=describe_interventions(comparison.trace),
            share=format_difference(values[largest_index], limit, comparison.trace.dtype),
            layer=largest_index[0],
            head=largest_index[1],
        ),
        **head_map_axes(),
    )
    if layer is not None:
        frame_head(fig, layer, head)
    if values.max() <= limit:
        none = _(
            "no head looks elsewhere by as much as {dtype} can tell ({limit} of its attention)",
            dtype=comparison.trace.dtype,
            limit=format_number(limit),
        )
        annotate_empty(fig, none)
    return fig


def surprisal_change_bars(comparison: Comparison, query: int | None = None) -> go.Figure:
    """Draw the change of each token's surprisal in bits."""
    trace = comparison.trace
    values = surprisal_change(comparison)  # (T,)
    bits = [surprisal(run) for run in reversed(comparison.runs)]
    names = position_labels(trace.tokens)
    title = _("surprisal, changed − unchanged, bits")
    alt = _("Only one token, which nothing precedes: no surprisal.")
    limits = comparison_rounding_threshold(comparison) * np.maximum(1, bits[0])
    nothing = len(trace) > 1 and bool((np.abs(values[1:]) <= limits[1:]).all())
    if len(trace) > 1:
        before, after = (format_number(np.nanmean(run)) for run in bits)
        title = _("surprisal, changed − unchanged, bits<br>mean {before} → {after}", before=before, after=after)
        worst = 1 + int(np.abs(values[1:]).argmax())  # the first NaN, if any
        alt = _(
            "Change of each token’s surprisal by {changes}: mean {before} → {after} bits a token; most, {most}, of "
            "{token} at {position}.",
            changes=describe_interventions(comparison.trace),
            before=before,
            after=after,
            most=format_difference(values[worst], limits[worst], trace.dtype),
            token=quote_token(trace.tokens[worst]),
            position=worst,
        )
    hover_texts = [
        _("{token}: {before} → {after} bits", token=name, before=format_number(before), after=format_number(after))
        for name, before, after in zip(names[1:], *(run[1:] for run in bits), strict=True)
    ]
    fig = figure(
        go.Bar(
            x=names,
            y=values,
            text=[_("{token}: nothing precedes it", token=names[0]), *hover_texts],
            textposition="none",
            hovertemplate="%{text}<extra></extra>",
        ),
        alt=alt,
        xaxis={**token_axis(trace.tokens, _("token")), "range": [-0.5, len(trace) - 0.5]},
        yaxis={"title": {"text": title}} | ({"range": [-1, 1]} if nothing else {}),
        hovermode="x",  # a short bar is hard to hit
    )
    if query is not None:
        column = {"x0": query - 0.5, "x1": query + 0.5, "y0": 0, "y1": 1, "yref": "paper"}
        fig.add_shape(type="rect", **column, line={"color": SELECTED, "width": 1})
    if nothing:
        none = _(
            "no token is harder or easier by as much as {dtype} can tell ({limit} bits)",
            dtype=trace.dtype,
            limit=format_number(limits[worst]),
        )
        annotate_empty(fig, none)
    return fig


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
    fig = figure(
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
        yaxis={
            "tickvals": np.arange(len(values)),
            "ticktext": [
                *(label(description, max_chars=28) for description in descriptions),
                *(translate(name) for name, *_rest in TOTALS),
            ],
            "autorange": "reversed",
            "showgrid": False,
        },
        hovermode="y",  # a short bar is hard to hit
    )
    return fig.add_hline(len(descriptions) - 0.5, line={"width": 1, "dash": "dot"})


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
    if index >= count + len(TOTALS):
        raise PointNotFoundError(_("there is no bar {bar}", bar=index))
    return TOTALS[index - count][2](comparison, query, token_id, measure)


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
    trace, query, (token_id, contrast_id) = (
        comparison.trace,
        selection.query,
        target_and_contrast(comparison.trace, selection),
    )
    after, before = (contributions.heads for contributions in _attributions(comparison, selection))  # (L, H)
    values = after - before
    others = np.where(after == 0, 0, values)
    largest = float(np.abs(others).max()) or 1.0
    largest_index = np.unravel_index(others.argmax(), others.shape)
    fig = figure(
        go.Heatmap(
            z=values,
            zmin=-largest,
            zmax=largest,
            text=[[format_contribution(value) for value in row] for row in values],
            customdata=np.stack((before, after), axis=-1),
            texttemplate="%{text}" if values.shape[1] <= 12 else None,
            hovertemplate=_(
                "layer %{y} head %{x}<br>adds %{customdata[1]:.4f}, unchanged %{customdata[0]:.4f}<br>%{z:+.4f}"
                "<extra></extra>"
            ),
            xgap=1,
            ygap=1,
            colorbar={"title": {"text": _("adds more, or less"), "side": "right"}},
        ),
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
        **head_map_axes(),
    )
    layer, head = selection.layer, selection.head
    return frame_head(fig, layer, head)


def component_compensation_bars(comparison: Comparison, selection: Selection) -> go.Figure:
    """Draw the change of every component's contribution to the target token's logit; the bars add up to its change."""
    trace, query, (token_id, contrast_id) = (
        comparison.trace,
        selection.query,
        target_and_contrast(comparison.trace, selection),
    )
    attributions, has_additions = _attributions(comparison, selection), has_intervention_additions(trace)
    bars = list(
        zip(
            *(
                component_bar_data(trace, hover_texts, include_interventions=has_additions)
                for hover_texts in attributions
            ),
            strict=True,
        )
    )
    names, _values, colours, descriptions, layers = zip(*(after for after, _before in bars), strict=True)
    after, before = np.array([[bar[1] for bar in pair] for pair in bars]).T
    values, change = after - before, attributions[0].logit - attributions[1].logit
    largest_index = int(values.argmax())
    hover_texts = [
        _(
            "{part}: adds {after}, unchanged {before}<br>{change}",
            part=description,
            after=format_number(a),
            before=format_number(b),
            change=format_number(a - b),
        )
        for description, a, b in zip(descriptions, after, before, strict=True)
    ]
    return figure(
        go.Bar(
            x=np.arange(len(values)),
            y=values,
            marker={"color": colours},
            text=hover_texts,
            textposition="none",
            customdata=[selection.layer if bar_layer is None else bar_layer for bar_layer in layers],
            hovertemplate="%{text}<extra></extra>",
        ),
        alt=_(
            "By how much more or less {count} parts add to {logit} after {token} than in the unchanged run, {change} "
            "in sum: {part} gained most, {gain}.",
            count=len(values),
            logit=logit_label(trace, token_id, contrast_id),
            token=quote_token(trace.tokens[query]),
            change=format_number(change),
            part=descriptions[largest_index],
            gain=format_number(values[largest_index]),
        ),
        xaxis={
            "tickvals": np.arange(len(names)),
            "ticktext": names,
            "showgrid": False,
            "title": {"text": norm_divisors_text(comparison, query)},
        },
        yaxis={"title": {"text": _("adds more, or less")}},
        annotations=note_above(_("The changes sum to {change}.", change=format_number(change))),
        hovermode="x",  # a short bar is hard to hit
    )


def norm_divisors_text(comparison: Comparison, query: int) -> str:
    """Compare the divisors of the norms in both runs."""
    config = comparison.trace.config
    if not has_final_norm(config):
        return _("each run’s norms divide by what they did in that run")
    last = norm_input_tap(config, "final_norm")
    after, before = (compute_norm_divisor(run, run[last][query], "final_norm", query) for run in comparison.runs)
    return _(
        "the final norm divides by {after}, unchanged by {before}:<br>that alone multiplies each part by {times}",
        after=format_number(after),
        before=format_number(before),
        times=format_number(before / after),
    )


def _attributions(comparison: Comparison, selection: Selection) -> list[LogitAttribution]:
    """Return the attributions of the changed and of the unchanged run."""
    token_id, contrast_id = target_and_contrast(comparison.trace, selection)
    return [direct_logit_attribution(run, selection.query, token_id, contrast_id) for run in comparison.runs]


def inspect_head_compensation(comparison: Comparison, selection: Selection, point: ClickedPoint) -> Derivation:
    """Derive the clicked head's change of contribution under the interventions."""
    return head_contribution_change(
        comparison, selection.query, *target_and_contrast(comparison.trace, selection), point.row, point.column
    )


def inspect_component_compensation(comparison: Comparison, selection: Selection, point: ClickedPoint) -> Derivation:
    """Derive the clicked component's change of contribution under the interventions."""
    component, layer = get_item(logit_components(comparison.trace), point.coordinate("item"))
    return component_contribution_change(
        comparison, selection.query, *target_and_contrast(comparison.trace, selection), component, layer
    )
