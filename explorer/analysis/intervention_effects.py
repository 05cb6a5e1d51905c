"""Effects of interventions on a run: of each ablation, of those that are set, and of several together."""

import math
from dataclasses import dataclass

import numpy as np

from explorer.architecture.formulas import ANGLES, LOCAL_ANGLES
from explorer.explain import arithmetic
from explorer.explain.captured import derive
from explorer.explain.derivation import (
    Calculation,
    Derivation,
    Input,
    RecomputationCheck,
    get_element,
    read_input,
    unique_inputs,
)
from explorer.explain.derivation import rounding_threshold as rounding_resolution
from explorer.explain.notation import format_six_digits, format_sum, format_token_position, quote_token
from explorer.explain.source_code import SourceLine
from explorer.interventions import Intervention, make_intervention
from explorer.tracing.comparison import Comparison
from explorer.tracing.jobs import MAX_CLICK_MACS
from explorer.tracing.trace import Trace
from explorer.translations import N_, _, ngettext, translate


@dataclass(frozen=True)
class AblationEffects:
    """Changes of log₂ p of a token in bits when one component alone is ablated.

    Below 0 the token is less probable without the component.

    Attributes:
        before: log₂ p of the token as the run is.
        heads: (L, H), one per head.
        sublayers: (L, 2), all heads of a layer together, and all neurons of its feed-forward.
        error: difference from `before` when the run is repeated without any ablation.
    """

    before: float
    heads: np.ndarray
    sublayers: np.ndarray
    error: float


def ablation_effects(
    trace: Trace,
    position: int,
    token_id: int,
    interventions: tuple[Intervention, ...] = (),
    max_wait_macs: float = MAX_CLICK_MACS,
    operation: str = "zero",
) -> AblationEffects:
    """Return the effect of ablating each component on the log probability of a token after a position.

    The first call runs the model's layers again, H + 2 times from each layer on.

    Args:
        interventions: active in all these runs, but not in the run that they are compared with; `error` is
            then the effect of these interventions alone.
        max_wait_macs: multiply-accumulate operations above which a page request does not wait for the result.
        operation: what a component is set to, "zero" or "mean" (over all tokens).

    Raises:
        ValueError: the trace has no model to run again.
        ResultNotReadyError: a page request needs a result that exceeds `max_wait_macs` and is not computed yet.
    """
    before = log2_probability(trace, position, token_id)
    baseline_change, *component_changes = (
        trace.ablate(position, token_id, interventions, max_wait_macs, operation) / np.log(2) - before
    )
    changes = np.reshape(component_changes, (trace.config.num_layers, -1))  # (L, H + 2)
    return AblationEffects(before, changes[:, :-2], changes[:, -2:], float(abs(baseline_change)))


def log2_probability(trace: Trace, position: int, token_id: int) -> float:
    """Return log₂ of the probability of a token after a position, in bits."""
    logits = trace.logits.row(position).astype(np.float64)
    largest = logits.max()
    return float((logits[token_id] - largest - np.log(np.exp(logits - largest).sum())) / np.log(2))


def comparison_rounding_threshold(comparison: Comparison) -> float:
    """Return the smallest difference between the runs that rounding does not explain, for numbers of size 1.

    If the runs rotate q and k by different angles, it is that of the largest angle: equal distances between two
    angles are then rounded differently.
    """
    largest = 0.0
    for name in (ANGLES, LOCAL_ANGLES):
        angles = [run[name] for run in comparison.runs if name in run]
        if len(angles) == 2 and not np.array_equal(*angles):
            largest = max(largest, *(float(np.abs(values).max()) for values in angles))
    return rounding_resolution(comparison.trace.dtype, largest)


def pattern_change(comparison: Comparison, layer: int, head: int) -> np.ndarray:
    """Return changed − unchanged attention weights, (T, T) in [-1, 1], row = query, column = key.

    Each row sums to 0.
    """
    name = f"blocks.{layer}.attn.pattern"
    return comparison.trace[name][head] - comparison.other[name][head]


def largest_score_change(comparison: Comparison, layer: int, head: int) -> float:
    """Return the largest |changed score − unchanged score| of a head, over the causally visible keys."""
    name = f"blocks.{layer}.attn.scores"
    return float(np.abs(np.tril(comparison.trace[name][head] - comparison.other[name][head])).max())


def largest_score(comparison: Comparison, layer: int, head: int) -> float:
    """Return the largest |score| of a head in either run, over the same keys, as the scale of its changes."""
    name = f"blocks.{layer}.attn.scores"
    return float(max(np.abs(np.tril(run[name][head])).max() for run in comparison.runs))


def attention_shift(comparison: Comparison) -> np.ndarray:
    """Return the fraction of each head's attention that moved to other keys, (L, H) in [0, 1].

    ½ Σ |change|, averaged over queries.
    """
    name = "blocks.*.attn.pattern"
    pattern_pairs = zip(comparison.trace.layers(name), comparison.other.layers(name), strict=True)
    return np.stack([np.abs(changed - unchanged).sum(-1).mean(-1) / 2 for changed, unchanged in pattern_pairs])


MEASURES = ("logit", "probability")


@dataclass(frozen=True)
class InterventionInteraction:
    """A measure of a next token without, with each, and with all interventions.

    Attributes:
        before: without interventions.
        single_values: (N,), with each of N interventions alone.
        joint_value: with all of them.
    """

    before: float
    single_values: np.ndarray
    joint_value: float

    @property
    def effects(self) -> np.ndarray:
        """Effect of each intervention alone, (N,)."""
        return self.single_values - self.before

    @property
    def sum(self) -> float:
        """Sum of the single effects."""
        return float(self.effects.sum())

    @property
    def joint(self) -> float:
        """Effect of all interventions together."""
        return self.joint_value - self.before

    @property
    def interaction(self) -> float:
        """joint − sum; 0 if the effects add up."""
        return self.joint - self.sum


def intervention_interaction(
    comparison: Comparison, position: int, token_id: int, measure: str
) -> InterventionInteraction:
    """Measure the interventions of a run on the "logit" or "probability" of a token after a position.

    The first call runs the model once for every intervention.

    Raises:
        ValueError: the trace has no model to run again.
    """
    changed, unchanged = comparison.runs
    index = MEASURES.index(measure)

    def apply_measure(outcome: np.ndarray) -> float:
        return float(np.exp(outcome[1]) if index else outcome[0])

    single_values = [
        apply_measure(unchanged.logit_and_log_probability(position, token_id, (intervention,)))
        for intervention in changed.edits
    ]
    before, joint_value = (
        apply_measure(captured_logit_and_log_probability(run, position, token_id)) for run in (unchanged, changed)
    )
    return InterventionInteraction(before, np.array(single_values), joint_value)


def captured_logit_and_log_probability(trace: Trace, position: int, token_id: int) -> np.ndarray:
    """Return the logit and ln p of a token from the captured logits, (2,)."""
    logits = trace.logits.row(position).astype(np.float64)
    return np.array([logits[token_id], logits[token_id] - np.logaddexp.reduce(logits)])


def check_recomputed_logits(comparison: Comparison, position: int, token_id: int) -> RecomputationCheck:
    """Check logit and ln p of both runs, computed by running the model again, against the captured logits."""
    recomputed = [run.logit_and_log_probability(position, token_id, run.edits) for run in comparison.runs]
    captured = [captured_logit_and_log_probability(run, position, token_id) for run in comparison.runs]
    largest = max(float(np.abs(run.logits.row(position)).max()) for run in comparison.runs)
    return RecomputationCheck.from_arrays(comparison.trace.dtype, np.array(recomputed), np.array(captured), largest)


def weight_change(comparison: Comparison, layer: int, head: int, query: int, key: int) -> Derivation | None:
    """Derive the change of an attention weight by interventions; None after the query."""
    if key > query:
        return None
    name, index = f"blocks.{layer}.attn.pattern", (head, query, key)
    after, before = (derive(run, name, index) for run in comparison.runs)
    value = after.recomputed_value - before.recomputed_value
    working = Calculation(
        _("change = changed weight − unchanged weight"),
        lambda: _(
            "changed: {changed}; unchanged: {unchanged}; change = {value}",
            changed=after.working.numbers(),
            unchanged=before.working.numbers(),
            value=format_six_digits(value),
        ),
        value,
        (*after.working.inputs, *before.working.inputs),
    )
    source = SourceLine(
        FILE,
        "return comparison.trace[name][head] - comparison.other[name][head]",
    )
    displayed_value = get_element(pattern_change(comparison, layer, head), query, key)
    return Derivation(_("change of the attention weight"), after.location, displayed_value, working, source)


FILE = "explorer/analysis/intervention_effects.py"
ABLATION_LOCATIONS = {
    "head": N_("of {token} after {place}, layer {layer} head {head} ablated"),
    "heads": N_("of {token} after {place}, all heads of layer {layer} ablated"),
    "feed_forward": N_("of {token} after {place}, the feed-forward of layer {layer} ablated"),
}


def ablation_effect(
    trace: Trace, query: int, token_id: int, component: int, layer: int, operation: str = "zero"
) -> Derivation:
    """Derive the change of a token's log₂ probability after the query if a component is ablated, in bits.

    Args:
        component: index of a head of the layer; after the heads, all heads, then all neurons of its feed-forward.
        operation: what it is set to, "zero" or "mean".
    """
    ablations, heads = ablation_effects(trace, query, token_id, operation=operation), trace.config.num_heads
    displayed_value = get_element(np.concatenate([ablations.heads, ablations.sublayers], axis=-1), layer, component)
    logits, read = read_input(trace, "logits", query)
    before = -arithmetic.surprisal(logits, token_id, ()).value
    after = float(trace.ablate(query, token_id, operation=operation)[1 + layer * (heads + 2) + component]) / math.log(2)
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
        f"blocks.{layer}.{'ffn.hidden' if component > heads else 'attn.z'}", operation, index=index
    )
    numbers = {
        "after": format_six_digits(2**after),
        "before": format_six_digits(2**before),
        "change": format_six_digits(after - before),
    }
    working = Calculation(
        _("change = log₂ p with it ablated − log₂ p as it is"),
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
            FILE,
            "trace.ablate(position, token_id, interventions, max_wait_macs, operation) / np.log(2)",
        ),
    )


def check_ablation_rerun(trace: Trace, query: int, token_id: int, operation: str = "zero") -> RecomputationCheck:
    """Check log₂ p of a token, from running the model again without ablation, against the captured logits."""
    error = ablation_effects(trace, query, token_id, operation=operation).error
    return RecomputationCheck.from_arrays(trace.dtype, error, 0.0, np.abs(trace.logits.row(query)).max() / np.log(2))


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
        arithmetic.mean(symbols, shifts, (from_after, from_before), _("share")),
        SourceLine(FILE, "return np.stack([np.abs(changed - unchanged).sum(-1)"),
    )


MEASURED = {"logit": N_("change of the logit"), "probability": N_("change of the probability")}


def single_effect(comparison: Comparison, query: int, token_id: int, measure: str, index: int) -> Derivation:
    """Derive the effect of one of the interventions alone."""
    interaction = intervention_interaction(comparison, query, token_id, measure)
    displayed_value, intervention = get_element(interaction.effects, index), comparison.trace.edits[index]
    before, read = _captured_measure(comparison, query, token_id, measure, changed=False)
    logit, ln_p = comparison.other.logit_and_log_probability(query, token_id, (intervention,)).tolist()
    after = logit if measure == "logit" else math.exp(ln_p)
    rerun_input = Input(_("logits of a run with {edit}, at [{query}]", edit=intervention, query=query), (), read.shape)
    source = SourceLine(FILE, "return self.single_values - self.before")
    working = arithmetic.difference(_("changed − unchanged"), after, before, (read, rerun_input))
    return _derivation(comparison, query, token_id, measure, displayed_value, working, source)


def summed_effect(comparison: Comparison, query: int, token_id: int, measure: str) -> Derivation:
    """Derive the sum of the single effects."""
    interaction = intervention_interaction(comparison, query, token_id, measure)
    effects = [single_effect(comparison, query, token_id, measure, i).working for i in range(len(interaction.effects))]
    terms = interaction.single_values - _captured_measure(comparison, query, token_id, measure, changed=False)[0]
    total = math.fsum(terms)
    working = Calculation(
        _("sum of what each change does alone"),
        lambda: f"{format_sum(terms)} = {format_six_digits(total)}",
        total,
        unique_inputs(read for effect in effects for read in effect.inputs),
    )
    source = SourceLine(FILE, "return float(self.effects.sum())")
    return _derivation(comparison, query, token_id, measure, interaction.sum, working, source)


def joint_effect(comparison: Comparison, query: int, token_id: int, measure: str) -> Derivation:
    """Derive the effect of all interventions together."""
    interaction = intervention_interaction(comparison, query, token_id, measure)
    before, read = _captured_measure(comparison, query, token_id, measure, changed=False)
    after, rerun_input = _captured_measure(comparison, query, token_id, measure, changed=True)
    source = SourceLine(FILE, "return self.joint_value - self.before")
    working = arithmetic.difference(_("changed − unchanged"), after, before, (read, rerun_input))
    return _derivation(comparison, query, token_id, measure, interaction.joint, working, source)


def interaction_effect(comparison: Comparison, query: int, token_id: int, measure: str) -> Derivation:
    """Derive the interaction: the joint effect minus the sum."""
    interaction: InterventionInteraction = intervention_interaction(comparison, query, token_id, measure)
    joint, total = (
        derive_effect(comparison, query, token_id, measure).working for derive_effect in (joint_effect, summed_effect)
    )
    symbols = _("interaction = effect of all together − sum of the single ones")
    working = arithmetic.difference(symbols, joint.value, total.value, total.inputs)
    source = SourceLine(FILE, "return self.joint - self.sum")
    return _derivation(comparison, query, token_id, measure, interaction.interaction, working, source)


def _captured_measure(
    comparison: Comparison, query: int, token_id: int, measure: str, changed: bool
) -> tuple[float, Input]:
    logits, read = read_input(comparison.trace if changed else comparison.other, "logits", query)
    value = float(logits[token_id]) if measure == "logit" else arithmetic.probability(logits, token_id, ()).value
    return value, read


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
