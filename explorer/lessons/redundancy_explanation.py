"""Text on redundant components; each sentence has a figure that shows their ablation."""

from collections.abc import Iterator

from explorer.analysis.prediction_reasons import Redundancy
from explorer.explain.notation import format_number, join_names, quote_token
from explorer.lessons.prediction_explanation import ExplanationSentence, ablation_state_change, component_name
from explorer.tracing.trace import Trace
from explorer.translations import _


def explain_redundancy(trace: Trace, position: int, redundancy: Redundancy) -> Iterator[ExplanationSentence]:
    """Yield sentences on the redundant components after a position, from `explorer.analysis.prediction_reasons`."""
    values = {
        "token": quote_token(trace.vocabulary[redundancy.token_id]),
        "rival": quote_token(trace.vocabulary[redundancy.contrast_id]),
        "probability": format_number(2**redundancy.log2_p),
    }
    selection_change, figure_id = {"view": "prediction", "query": position}, "prediction-parts"
    if not redundancy.sets:
        text = _(
            "{token} has probability {probability}: fewer than two parts raise its logit above that of {rival}.",
            **values,
        )
        yield ExplanationSentence(text, selection_change, figure_id)
        return
    text = _(
        "{token} has probability {probability}. {parts} add most to its lead over {rival}; of each size the set of "
        "them that costs most together, beyond what its parts cost one by one:",
        parts=_capitalise(join_names(map(component_name, redundancy.candidates))),
        **values,
    )
    yield ExplanationSentence(text, selection_change, figure_id)
    for component_set in redundancy.sets:
        text = _(
            "{parts}: one by one {alone} bits, {sum} in sum; together {together}, which leaves a probability of "
            "{after}.",
            parts=_capitalise(join_names(map(component_name, component_set.components))),
            alone=", ".join(format_number(bits) for bits in component_set.single_costs),
            sum=format_number(sum(component_set.single_costs)),
            together=format_number(component_set.joint_cost),
            after=format_number(2 ** (redundancy.log2_p - component_set.joint_cost)),
        )
        yield ExplanationSentence(
            text, ablation_state_change(trace, position, component_set.components), "experiments-together_probability"
        )


def _capitalise(text: str) -> str:
    """Return a text with its first letter capitalised."""
    return text[:1].upper() + text[1:]
