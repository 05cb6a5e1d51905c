"""Experiments view: interventions on components and their effects."""

from collections.abc import Callable
from contextlib import suppress

import numpy as np

from explorer.analysis.intervention_effects import (
    ablation_effect,
    ablation_effects,
    check_ablation_rerun,
    comparison_rounding_threshold,
    derive_attention_shift,
    log2_probability,
    weight_change,
)
from explorer.analysis.run_difference import residual_distance, surprisal_gap
from explorer.architecture.residual_stream import stream_tap_patterns
from explorer.explain.derivation import ClickedPoint, Derivation, get_item, rounding_threshold
from explorer.explain.notation import format_percent, format_six_digits, quote_token
from explorer.interventions import make_intervention
from explorer.state.selection import Selection, SelectionField
from explorer.tracing.comparison import Comparison
from explorer.tracing.jobs import ResultNotReadyError
from explorer.tracing.trace import Trace
from explorer.translations import N_, _, translate
from explorer.views.experiments.effects import (
    ABLATIONS,
    MARK_OF_TOGETHER,
    attention_shift_map,
    combined_effects_bars,
    head_ablation_map,
    head_compensation_map,
    inspect_combined_effect,
    inspect_head_compensation,
    sublayer_ablation_bars,
)
from explorer.views.intervention_controls import (
    BASE,
    DROP,
    FEED_FORWARD,
    GATE,
    HEAD,
    HEAD_OFF,
    HEADS,
    HIDDEN,
    MASK,
    MEAN,
    NEURON,
    NORMS,
    PATCH_FEED_FORWARD,
    PATCH_HEAD,
    PATCH_HEADS,
    PATCH_MEAN,
    PATCH_NEURON,
    PATCH_STREAM,
    REMOVE_TOKEN_DIRECTION,
    ROTATION_OFF,
    ROTATION_SHIFT,
    STEER_TO_TOKEN,
    VECTOR_SHIFT,
)
from explorer.views.labels import PARTS, logit_label, target_and_contrast, target_token
from explorer.views.run_difference_figures import (
    contribution_difference_bars,
    describe_interventions,
    effect_summary,
    format_difference,
    inspect_component_difference,
    inspect_next_token_probability,
    next_token_comparison,
    pattern_change_map,
    residual_distance_map,
    surprisal_difference_bars,
)
from explorer.views.verification import Verification, verify_comparison, verify_derived
from explorer.views.view import Panel, View


def baseline_trace(trace: Trace) -> Trace:
    """Return the run without interventions."""
    return trace.baseline or trace


def describe_intervention_effect(trace: Trace, selection: Selection) -> str:
    """Return the target token's probability without and with the interventions, in numbers."""
    query, token_id = selection.query, target_token(trace, selection)
    before = log2_probability(baseline_trace(trace), query, token_id)
    changed = Comparison.with_unchanged(trace) if trace.baseline else None
    limit = comparison_rounding_threshold(changed) if changed else rounding_threshold(trace.dtype)
    if changed:
        after = log2_probability(trace, query, token_id)
        template = CHANGED
        notes = [logit_change_text(changed, selection), effect_summary(changed, query)]
    else:
        after = before + ablation_effects(trace, query, token_id).heads[selection.layer, selection.head]
        mean = mean_ablated_probability(trace, query, token_id, selection.layer, selection.head)
        mean_text = _("with the head’s mean over the text instead: → {mean}", mean=format_six_digits(mean))
        template, notes = ABLATED, [mean_text, *[translate(BIASES)] * (trace.config.bias or trace.config.has_ffn_bias)]
    effect_text = translate(
        template,
        changes=describe_interventions(trace),
        token=quote_token(trace.vocabulary[token_id]),
        query=quote_token(trace.tokens[query]),
        position=query,
        head=selection.head,
        layer=selection.layer,
        before=format_six_digits(2**before),
        after=format_six_digits(2**after),
        times=format_six_digits(2 ** (after - before)),
        bits=format_difference(after - before, limit * max(1.0, abs(before)), trace.dtype, N_("{value} bits")),
    )
    return "\n".join([effect_text, *notes])


def logit_change_text(comparison: Comparison, selection: Selection) -> str:
    """Return the target token's logit, less the contrast token's if there is one, before and after the changes."""
    trace, query = comparison.trace, selection.query
    token_id, contrast_id = target_and_contrast(trace, selection)
    after, before = (
        float(logits[token_id]) - (0.0 if contrast_id is None else float(logits[contrast_id]))
        for logits in (run.logits.row(query) for run in comparison.runs)
    )
    return _(
        "{logit}: {before} → {after}, Δ {change}",
        logit=logit_label(trace, token_id, contrast_id),
        before=format_six_digits(before),
        after=format_six_digits(after),
        change=format_six_digits(after - before),
    )


CHANGED = N_("{changes}:\nprobability of {token} after {query} ({position}): {before} → {after}, log₂ {times} = {bits}")


ABLATED = N_(
    "probability of {token} after {query} ({position}), without layer {layer} head {head}: {before} → {after}, log₂ "
    "{times} = {bits}"
)


BIASES = N_("ablated is what a part makes of the tokens; the biases of W_O and of the feed-forward’s output stay")


INTERACTION_TITLES = {  # measure of a next token -> of what the panel is
    "probability": N_("Do the effects add up? The probability"),
    "logit": N_("Do the effects add up? The logit"),
}
VERIFY_COMPENSATION = verify_comparison(*PARTS, "logits")
RERUN_CHECK = (
    N_("log₂ p, run again with nothing ablated, against the captured logits"),
    lambda trace, s: check_ablation_rerun(baseline_trace(trace), s.query, target_token(trace, s), s.option("ablation")),
)


def ablation_sentence(trace: Trace, selection: Selection) -> str:
    """Return which head's ablation changes the target token's probability most, by zero and by its mean.

    "" for a run with interventions.
    """
    if trace.edits:
        return ""
    query, token_id = selection.query, target_token(trace, selection)
    with suppress(ResultNotReadyError):  # the figure's placeholder shows how far that is
        effects = ablation_effects(trace, query, token_id)
        layer, head = np.unravel_index(np.abs(effects.heads).argmax(), effects.heads.shape)
        bits = effects.before, effects.before + effects.heads[layer, head]
        before, after = (format_percent(2**log_probability) for log_probability in bits)
        if before != after:
            return _(
                "Without layer {layer} head {head}, {token} changes most: {before} → {after}. With its mean "
                "instead: {mean}. −1 bit: half as likely. Choose a cell.",
                layer=layer,
                head=head,
                token=quote_token(trace.vocabulary[token_id]),
                before=before,
                after=after,
                mean=format_percent(mean_ablated_probability(trace, query, token_id, int(layer), int(head))),
            )
    return ""


def mean_ablated_probability(trace: Trace, query: int, token_id: int, layer: int, head: int) -> float:
    """Return a token's probability after the query with a head's output at its mean over the text, by a rerun."""
    mean = make_intervention(f"blocks.{layer}.attn.z", "mean", index=head)
    return float(np.exp(trace.logit_and_log_probability(query, token_id, (mean,))[1]))


def verify_ablated_logits(trace: Trace, selection: Selection) -> Verification:
    """Verify the logits of the ablated runs by a rerun."""
    return verify_derived("logits", against=RERUN_CHECK)(baseline_trace(trace), selection)


def inspect_head_ablation(trace: Trace, selection: Selection, point: ClickedPoint) -> Derivation:
    """Derive the effect of ablating the clicked head."""
    run = baseline_trace(trace)
    head = get_item(range(run.config.num_heads), point.column)
    return ablation_effect(
        run, selection.query, target_token(trace, selection), head, point.row, selection.option("ablation")
    )


def inspect_sublayer_ablation(trace: Trace, selection: Selection, point: ClickedPoint) -> Derivation:
    """Derive the effect of ablating the clicked sublayer."""
    layer, component = divmod(point.coordinate("item"), 2)
    run = baseline_trace(trace)
    return ablation_effect(
        run,
        selection.query,
        target_token(trace, selection),
        run.config.num_heads + component,
        layer,
        selection.option("ablation"),
    )


def name_unchanged_model(template: str, unchanged: str) -> Callable[[Trace, Selection], str]:
    """Return a panel's heading: its title with the target {token}; of a changed run, that the model is unchanged."""

    def heading(trace: Trace, selection: Selection) -> str:
        if trace.baseline:
            return translate(unchanged)
        return translate(template, token=quote_token(trace.vocabulary[target_token(trace, selection)]))

    return heading


VIEW = View(
    name="experiments",
    title=N_("Change"),
    group="try",
    order=100,
    fields=(SelectionField("ablation", "zero", N_("ablated"), ABLATIONS),),
    description=N_(
        "Each cell ablates one head. Its number says by how many bits the explained token’s probability changes: −1 "
        "bit halves it. Choose one."
    ),
    sentence=ablation_sentence,
    formula=describe_intervention_effect,
    required_taps=("blocks.*.attn.pattern", "blocks.*.attn.z", "blocks.*.ffn.hidden", "blocks.*.resid_post", "logits"),
    unavailable_message=lambda config: _("Too little was captured of this model to change it."),
    controls=("layer", "head", "neuron", "target", "query", "key"),
    intervention_controls=(
        *(HEAD_OFF, HEAD, HEADS, MEAN, PATCH_HEAD, PATCH_MEAN, PATCH_HEADS, MASK, DROP),
        *(FEED_FORWARD, NEURON, GATE, HIDDEN, PATCH_FEED_FORWARD, PATCH_NEURON),
        *(STEER_TO_TOKEN, REMOVE_TOKEN_DIRECTION, PATCH_STREAM),
        *(*NORMS, ROTATION_SHIFT, VECTOR_SHIFT, BASE, ROTATION_OFF),
    ),
    panels=(
        Panel(
            name="heads",
            title=N_("Each head ablated alone: change of the explained token’s log₂ probability"),
            heading=name_unchanged_model(
                N_("Each head ablated: log₂ p of {token}"), N_("Each head ablated, unchanged model")
            ),
            draw=lambda trace, s: head_ablation_map(
                baseline_trace(trace),
                s.query,
                target_token(trace, s),
                s.layer,
                s.head,
                trace.edits,
                s.option("ablation"),
            ),
            chooser="ablation",
            click_selects={"x": "head", "y": "layer"},
            verify=verify_ablated_logits,
            inspect=inspect_head_ablation,
            width="half",
        ),
        Panel(
            name="next_token_change",
            title=N_("What the change did to the next token after the query"),
            draw=lambda runs, s: next_token_comparison(runs, s.query),
            inspect=inspect_next_token_probability,
            compared_run="unchanged",
            verify=verify_comparison("logits"),
            width="half",
        ),
        Panel(
            name="sublayers",
            title=N_("A layer’s heads ablated, or its feed-forward"),
            heading=name_unchanged_model(
                N_("Heads or feed-forward ablated: log₂ p of {token}"),
                N_("Heads or feed-forward ablated, unchanged model"),
            ),
            draw=lambda trace, s: sublayer_ablation_bars(
                baseline_trace(trace), s.query, target_token(trace, s), s.option("ablation")
            ),
            inspect=inspect_sublayer_ablation,
            click_selects={"customdata": "layer"},
            verify=verify_ablated_logits,
            width="half",
        ),
        *(
            Panel(
                name=f"together_{measure}",
                title=title,
                draw=lambda runs, s, measure=measure: combined_effects_bars(
                    runs, s.query, target_token(runs.trace, s), measure
                ),
                compared_run="unchanged",
                verify=MARK_OF_TOGETHER,
                inspect=lambda runs, s, point, measure=measure: inspect_combined_effect(
                    runs, s.query, target_token(runs.trace, s), measure, point
                ),
                width="half",
            )
            for measure, title in INTERACTION_TITLES.items()
        ),
        Panel(
            name="grown_heads",
            title=N_("Who stands in? How much more each head adds"),
            draw=head_compensation_map,
            compared_run="unchanged",
            click_selects={"x": "head", "y": "layer"},
            verify=VERIFY_COMPENSATION,
            inspect=inspect_head_compensation,
            width="half",
        ),
        Panel(
            name="grown_parts",
            title=N_("The same of all parts of the logit"),
            draw=contribution_difference_bars,
            compared_run="unchanged",
            click_selects={"customdata": "layer"},
            verify=VERIFY_COMPENSATION,
            inspect=inspect_component_difference,
            width="half",
        ),
        Panel(
            name="spread",
            title=N_("How far the change moved each token’s stream"),
            draw=lambda runs, s: residual_distance_map(runs, s.query),
            compared_run="unchanged",
            click_selects={"x": "query", "customdata": "layer"},
            verify=verify_comparison(stream_tap_patterns),
            inspect=lambda runs, s, point: residual_distance(runs, point.row, point.column),
            width="half",
        ),
        Panel(
            name="other_heads",
            title=N_("Which heads look elsewhere because of it"),
            draw=lambda runs, s: attention_shift_map(runs, s.layer, s.head),
            compared_run="unchanged",
            click_selects={"x": "head", "y": "layer"},
            verify=verify_comparison("blocks.*.attn.pattern"),
            inspect=lambda runs, s, point: derive_attention_shift(runs, point.row, point.column),
            width="half",
        ),
        Panel(
            name="pattern_change",
            title=N_("The chosen head’s pattern: changed − unchanged"),
            heading=N_("Layer {layer} head {head}: changed − unchanged weights"),
            draw=lambda runs, s: pattern_change_map(runs, s.layer, s.head, s.query, s.key),
            compared_run="unchanged",
            click_selects={"x": "key", "y": "query"},
            verify=verify_comparison("blocks.{layer}.attn.pattern"),
            inspect=lambda runs, s, point: weight_change(runs, s.layer, s.head, point.row, point.column),
            width="half",
        ),
        Panel(
            name="text_change",
            title=N_("Which tokens it made harder or easier"),
            draw=lambda runs, s: surprisal_difference_bars(runs, s.query),
            inspect=lambda runs, s, point: surprisal_gap(runs, point.column),
            compared_run="unchanged",
            click_selects={"x": "query"},
            verify=verify_comparison("logits"),
            height=300,
            min_width=600,
        ),
    ),
)
