"""Derivations of the effects of interventions: ablation, steering, and several together."""

import math

import numpy as np

from explorer.analysis.intervention_effects import (
    InterventionInteraction,
    ablation_effects,
    attention_shift,
    intervention_interaction,
    next_token_change,
    relative_stream_change,
    surprisal_change,
)
from explorer.analysis.residual import residual_stages
from explorer.analysis.steering import SteeringEffectsByPrompt, direction_cosines, embed_and_block_output_taps
from explorer.explain.arithmetic import cosine, mean, probability, quotient, surprisal
from explorer.explain.clicked_point import get_element, get_item
from explorer.explain.derivation import Calculation, Derivation, Input, read_input, unique_inputs
from explorer.explain.derived.prediction import token_probability
from explorer.explain.notation import format_number, format_sum, format_token_position, quote_token, token_formatter
from explorer.explain.source_code import SourceLine
from explorer.explain.tolerance import Check
from explorer.interventions import DirectionSpec, make_intervention
from explorer.tracing.comparison import Comparison
from explorer.tracing.trace import Trace
from explorer.translations import N_, _, ngettext, translate

CHANGE = "explorer/analysis/intervention_effects.py"
ABLATION_LOCATIONS = {
    "head": N_("of {token} after {place}, without head {head} of layer {layer}"),
    "heads": N_("of {token} after {place}, without all heads of layer {layer}"),
    "feed_forward": N_("of {token} after {place}, without the feed-forward of layer {layer}"),
}


def ablation_effect(trace: Trace, query: int, token_id: int, component: int, layer: int) -> Derivation:
    """Derive the change of a token's log₂ probability after the query if a component is ablated, in bits.

    Args:
        component: index of a head of the layer; after the heads, all heads, then all neurons of its feed-forward.
    """
    ablations, heads = ablation_effects(trace, query, token_id), trace.config.num_heads
    displayed_value = get_element(np.concatenate([ablations.heads, ablations.sublayers], axis=-1), layer, component)
    logits, read = read_input(trace, "logits", query)
    before = -surprisal(logits, token_id, ()).value
    after = float(trace.ablate(query, token_id)[1 + layer * (heads + 2) + component]) / math.log(2)
    kind = ["heads", "feed_forward"][component - heads] if component >= heads else "head"
    location = translate(
        ABLATION_LOCATIONS[kind],
        token=quote_token(trace.vocabulary[token_id]),
        place=format_token_position(trace, query),
        head=component,
        layer=layer,
    )
    index = component if component < heads else None
    intervention = make_intervention(
        f"blocks.{layer}.{'ffn.hidden' if component > heads else 'attn.z'}", "zero", index=index
    )
    numbers = {
        "after": format_number(2**after),
        "before": format_number(2**before),
        "change": format_number(after - before),
    }
    working = Calculation(
        _("change = log₂ p without it − log₂ p as it is"),
        lambda: _("log₂ {after} − log₂ {before} = {change} bits", **numbers),
        after - before,
        (read, Input(_("logits of a run with {edit}, at [{query}]", edit=intervention, query=query), (), logits.shape)),
    )
    return Derivation(
        _("change of log₂ p, in bits"),
        location,
        displayed_value,
        working,
        SourceLine(
            "explorer/analysis/intervention_effects.py",
            "trace.ablate(position, token_id, interventions, max_wait_macs) / np.log(2)",
        ),
    )


def check_ablation_rerun(trace: Trace, query: int, token_id: int) -> Check:
    """Check log₂ p of a token, from running the model again without ablation, against the captured logits."""
    error = ablation_effects(trace, query, token_id).error
    return Check.from_arrays(trace.dtype, error, 0.0, np.abs(trace.logits.row(query)).max() / np.log(2))


def next_token_probability(comparison: Comparison, query: int, token_id: int, changed: bool) -> Derivation:
    """Derive a next token's probability in the changed run, or in the unchanged one."""
    change = next_token_change(comparison, query)
    displayed_value = float((change.after if changed else change.before)[token_id])
    source = SourceLine(CHANGE, "before, after = (next_token_distribution(run, position).plain")
    return token_probability(
        comparison.trace if changed else comparison.other, query, token_id, displayed_value, source
    )


def derive_surprisal_change(comparison: Comparison, position: int) -> Derivation | None:
    """Derive the change of a token's surprisal in bits; None for the first token."""
    trace = comparison.trace
    displayed_value = get_element(surprisal_change(comparison), position)
    if position == 0:
        return None
    logits, reads = zip(*(read_input(run, "logits", position - 1) for run in comparison.runs), strict=True)
    after, before = (surprisal(run_logits, trace.token_ids[position], ()).value for run_logits in logits)
    numbers = {"after": format_number(after), "before": format_number(before), "change": format_number(after - before)}
    working = Calculation(
        _("changed − unchanged, each −log₂ p"),
        lambda: _("{after} − {before} = {change} bits", **numbers),
        after - before,
        reads,
    )
    return Derivation(
        _("change of the surprisal, in bits"),
        _("of {token}", token=format_token_position(trace, position)),
        displayed_value,
        working,
        SourceLine(CHANGE, "return surprisal(comparison.trace) - surprisal(comparison.other)"),
    )


def residual_change(comparison: Comparison, row: int, position: int) -> Derivation:
    """Derive the relative change of a token's stream at one of the `stages`."""
    stage = get_item(residual_stages(comparison.trace), row)
    displayed_value = get_element(relative_stream_change(comparison), row, position)
    (after, from_after), (before, from_before) = (read_input(run, stage.tap, position) for run in comparison.runs)
    distance, norm = (math.sqrt(math.fsum(x * x)) for x in (after - before, before))
    return Derivation(
        _("how far the stream moved at {stage}", stage=stage.name),
        format_token_position(comparison.trace, position),
        displayed_value,
        quotient(_("‖changed x − unchanged x‖ / ‖unchanged x‖"), distance, norm, (from_after, from_before)),
        SourceLine(CHANGE, "return np.divide(distances, norms, "),
    )


def derive_attention_shift(comparison: Comparison, layer: int, head: int) -> Derivation:
    """Derive the fraction of a head's attention that moved to other keys."""
    displayed_value = get_element(attention_shift(comparison), layer, head)
    name = f"blocks.{layer}.attn.pattern"
    (after, from_after), (before, from_before) = (read_input(run, name, head) for run in comparison.runs)
    shifts = [math.fsum(row) / 2 for row in np.abs(after - before)]
    symbols = _("share = mean over queries of ½ Σ |changed weight − unchanged weight|")
    location = ngettext(
        "layer {layer} head {head}, mean over {count} query",
        "layer {layer} head {head}, mean over {count} queries",
        len(shifts),
        layer=layer,
        head=head,
    )
    return Derivation(
        _("share of the head’s attention that moved"),
        location,
        displayed_value,
        mean(symbols, shifts, (from_after, from_before), _("share")),
        SourceLine(CHANGE, "return np.stack([np.abs(changed - unchanged).sum(-1)"),
    )


INTERACTION = "explorer/analysis/intervention_effects.py"
MEASURED = {"logit": N_("change of the logit"), "probability": N_("change of the probability")}


def single_effect(comparison: Comparison, query: int, token_id: int, measure: str, index: int) -> Derivation:
    """Derive the effect of one of the interventions alone."""
    interaction = intervention_interaction(comparison, query, token_id, measure)
    displayed_value, intervention = get_element(interaction.effects, index), comparison.trace.edits[index]
    before, read = _captured_measure(comparison, query, token_id, measure, changed=False)
    logit, ln_p = comparison.other.outcome(query, token_id, (intervention,)).tolist()
    after = logit if measure == "logit" else math.exp(ln_p)
    rerun_input = Input(_("logits of a run with {edit}, at [{query}]", edit=intervention, query=query), (), read.shape)
    source = SourceLine(INTERACTION, "return self.single_values - self.before")
    return _derivation(
        comparison, query, token_id, measure, displayed_value, _change(before, after, (read, rerun_input)), source
    )


def summed_effect(comparison: Comparison, query: int, token_id: int, measure: str) -> Derivation:
    """Derive the sum of the single effects."""
    interaction = intervention_interaction(comparison, query, token_id, measure)
    effects = [single_effect(comparison, query, token_id, measure, i).working for i in range(len(interaction.effects))]
    terms = interaction.single_values - _captured_measure(comparison, query, token_id, measure, changed=False)[0]
    total = math.fsum(terms)
    working = Calculation(
        _("sum of what each change does alone"),
        lambda: f"{format_sum(terms)} = {format_number(total)}",
        total,
        unique_inputs(read for effect in effects for read in effect.inputs),
    )
    source = SourceLine(INTERACTION, "return float(self.effects.sum())")
    return _derivation(comparison, query, token_id, measure, interaction.sum, working, source)


def joint_effect(comparison: Comparison, query: int, token_id: int, measure: str) -> Derivation:
    """Derive the effect of all interventions together."""
    interaction = intervention_interaction(comparison, query, token_id, measure)
    before, read = _captured_measure(comparison, query, token_id, measure, changed=False)
    after, rerun_input = _captured_measure(comparison, query, token_id, measure, changed=True)
    source = SourceLine(INTERACTION, "return self.joint_value - self.before")
    return _derivation(
        comparison, query, token_id, measure, interaction.joint, _change(before, after, (read, rerun_input)), source
    )


def interaction_effect(comparison: Comparison, query: int, token_id: int, measure: str) -> Derivation:
    """Derive the interaction: the joint effect minus the sum."""
    interaction: InterventionInteraction = intervention_interaction(comparison, query, token_id, measure)
    joint, total = (
        derive_effect(comparison, query, token_id, measure).working for derive_effect in (joint_effect, summed_effect)
    )
    value = joint.value - total.value
    working = Calculation(
        _("interaction = effect of all together − sum of the single ones"),
        lambda: f"{format_number(joint.value)} − {format_number(total.value)} = {format_number(value)}",
        value,
        total.inputs,
    )
    source = SourceLine(INTERACTION, "return self.joint - self.sum")
    return _derivation(comparison, query, token_id, measure, interaction.interaction, working, source)


def _captured_measure(
    comparison: Comparison, query: int, token_id: int, measure: str, changed: bool
) -> tuple[float, Input]:
    logits, read = read_input(comparison.trace if changed else comparison.other, "logits", query)
    value = float(logits[token_id]) if measure == "logit" else probability(logits, token_id, ()).value
    return value, read


def _change(before: float, after: float, inputs: tuple[Input, ...]) -> Calculation:
    change = after - before
    return Calculation(
        _("changed − unchanged"),
        lambda: f"{format_number(after)} − {format_number(before)} = {format_number(change)}",
        change,
        inputs,
    )


def _derivation(
    comparison: Comparison,
    query: int,
    token_id: int,
    measure: str,
    displayed_value: float,
    working: Calculation,
    source: SourceLine,
) -> Derivation:
    token = quote_token(comparison.trace.vocabulary[token_id])
    location = _("of {token} after {place}", token=token, place=format_token_position(comparison.trace, query))
    return Derivation(translate(MEASURED[measure]), location, displayed_value, working, source)


STEERING = "explorer/analysis/steering.py"


def direction_cosine(trace: Trace, spec: DirectionSpec, depth: int, position: int) -> Derivation:
    """Derive the cosine of a token's stream at a depth with a direction."""
    unit = trace.direction(spec)
    displayed_value = get_element(direction_cosines(trace, unit), depth, position)
    x, read = read_input(trace, get_item(embed_and_block_output_taps(trace), depth), position)
    working = cosine((x, read), (unit, Input(spec.describe(token_formatter(trace)), (), unit.shape)), ("x", "u"))
    location = _("of {token}", token=format_token_position(trace, position))
    return Derivation(
        _("cosine with the direction"),
        location,
        displayed_value,
        working,
        SourceLine(STEERING, "return np.divide(streams @"),
    )


def steering_effect(trace: Trace, effects: SteeringEffectsByPrompt, index: int) -> Derivation:
    """Derive the effect of adding a direction after the example of an index, by running the model again."""
    displayed_value = get_element(effects.changes, index)
    prompt = effects.prompts[index]
    logit_differences = []
    for interventions in ((), (effects.edit,)):
        target_logit, contrast_logit = (
            trace.outcome(len(prompt) - 1, compared_id, interventions, token_ids=prompt)[0]
            for compared_id in (effects.token_id, effects.contrast_id)
        )
        logit_differences.append(float(target_logit - contrast_logit))
    before, after = logit_differences
    inputs = tuple(
        Input(name, (), (trace.config.vocab_size,))
        for name in (_("logits of a run with {edit}", edit=effects.edit.location_key), _("logits of a run as it is"))
    )
    numbers = f"{format_number(after)} − {format_number(before)} = {format_number(after - before)}"
    working = Calculation(_("changed − unchanged"), lambda: numbers, after - before, inputs)
    return Derivation(
        _("change of the lead"),
        token_formatter(trace)(prompt),
        displayed_value,
        working,
        SourceLine(STEERING, "return self.after - self.before"),
    )
