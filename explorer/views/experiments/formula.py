"""The effect of the interventions, or of ablating the chosen head, on the target token, in a line."""

from explorer.analysis.intervention_effects import ablation_effects, log2_probability
from explorer.analysis.tolerance import rounding_threshold
from explorer.explain.notation import format_number, quote_token
from explorer.state.selection import Selection
from explorer.tracing.comparison import Comparison
from explorer.tracing.trace import Trace
from explorer.translations import N_, translate
from explorer.views import intervention_effects
from explorer.views.target_token import target_token


def baseline_trace(trace: Trace) -> Trace:
    """Return the run without interventions."""
    return trace.baseline or trace


def formula(trace: Trace, selection: Selection) -> str:
    """Return the target token's probability without and with the interventions, in numbers."""
    query, token_id = selection.query, target_token(trace, selection)
    before = log2_probability(baseline_trace(trace), query, token_id)
    changed = Comparison.with_unchanged(trace) if trace.baseline else None
    limit = intervention_effects.comparison_rounding_threshold(changed) if changed else rounding_threshold(trace.dtype)
    if changed:
        after = log2_probability(trace, query, token_id)
        template, notes = CHANGED, [intervention_effects.effect_summary(changed, query)]
    else:
        after = before + ablation_effects(trace, query, token_id).heads[selection.layer, selection.head]
        template, notes = SILENCED, [translate(BIASES)] * (trace.config.bias or trace.config.has_ffn_bias)
    effect_text = translate(
        template,
        changes=intervention_effects.describe_interventions(trace),
        token=quote_token(trace.vocabulary[token_id]),
        query=quote_token(trace.tokens[query]),
        position=query,
        head=selection.head,
        layer=selection.layer,
        before=format_number(2**before),
        after=format_number(2**after),
        times=format_number(2 ** (after - before)),
        bits=intervention_effects.format_difference(
            after - before, limit * max(1.0, abs(before)), trace.dtype, N_("{value} bits")
        ),
    )
    return "\n".join([effect_text, *notes])


CHANGED = N_("{changes}:\nprobability of {token} after {query} ({position}): {before} → {after}, log₂ {times} = {bits}")


SILENCED = N_(
    "probability of {token} after {query} ({position}), without head {head} of layer {layer}: {before} → {after}, log₂ "
    "{times} = {bits}"
)


BIASES = N_("silenced is what a part makes of the tokens; the biases of W_O and of the feed-forward’s output stay")
