"""Derivations of single, summed, joint and interaction effects of interventions on a next token."""

import math

from explorer.analysis.intervention_interaction import InterventionInteraction, intervention_interaction
from explorer.explain.calculation import Calculation, Input, read_input, unique_inputs
from explorer.explain.clicked_point import get_element
from explorer.explain.derivation import Derivation
from explorer.explain.derived.distribution import probability
from explorer.explain.labels import format_token_position
from explorer.explain.notation import format_number, format_sum, quote_token
from explorer.explain.source_line import SourceLine
from explorer.tracing.comparison import Comparison
from explorer.translations import N_, _, translate

INTERACTION = "explorer/analysis/intervention_interaction.py"
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
