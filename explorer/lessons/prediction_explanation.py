"""Text that explains why a token was predicted, and redundant components; each sentence has a figure that shows it."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from explorer.analysis.next_token import NextTokenDistribution
from explorer.analysis.prediction_reasons import (
    DECISIVE_BITS,
    ModelComponent,
    PredictionReason,
    PredictionReasons,
    RedundantComponents,
)
from explorer.explain.notation import (
    format_contribution,
    format_number,
    format_percent,
    join_names,
    quote_token,
    quote_token_in_text,
    quote_word,
    quote_word_in_text,
)
from explorer.interventions import MAX_INTERVENTIONS, SEPARATOR, Intervention
from explorer.tracing.trace import Trace
from explorer.translations import N_, _, translate


@dataclass(frozen=True)
class ExplanationSentence:
    """A sentence of an explanation, and the figure that shows it.

    Attributes:
        text: the sentence.
        selection_change: changes of the selection that show the figure.
        figure_id: the figure's element id; "" for none.
        ablation: text of the intervention that switches the head off that it is about; "" for none.
    """

    text: str
    selection_change: dict[str, Any] = field(default_factory=dict)
    figure_id: str = ""
    ablation: str = ""


MIN_EXPLAINED_CHANCE = 0.05  # of a written token that was not the likeliest: below it the choice has no other reason


def is_unlikely_token(prediction: NextTokenDistribution, token_id: int) -> bool:
    """Return whether a token's own probability is small, and others were likelier."""
    return prediction.rank(token_id) > 1 and prediction.plain[token_id] < MIN_EXPLAINED_CHANCE


def name_probability(prediction: NextTokenDistribution, token_id: int) -> str:
    """Return a token's probability before temperature, in percent; it says so where the settings change it."""
    own, sampled = (format_percent(float(chances[token_id])) for chances in (prediction.plain, prediction.sampled))
    return own if own == sampled else _("{percent} before temperature", percent=own)


def explain_written_token(
    trace: Trace, prediction: NextTokenDistribution, temperature: float, quote: Callable[[str], str] = quote_word
) -> Iterator[ExplanationSentence]:
    """Yield a sentence on how a written token that was not the likeliest was chosen; of an unlikely one, what was.

    It was a random draw if these settings draw it; otherwise it was written with others, or picked by the user.
    """
    token_id = prediction.actual
    if prediction.rank(token_id) == 1:
        return
    values = {"token": quote(trace.vocabulary[token_id]), "rank": prediction.rank(token_id)}
    if token_id == prediction.sampled_token_id:
        text = _(
            "{token} was a random draw: its chance was {chance} at temperature {temperature:g}, number {rank:,} on the "
            "list.",
            chance=format_percent(float(prediction.sampled[token_id])),
            temperature=temperature,
            **values,
        )
    else:
        text = _(
            "{token} was not the likeliest: its chance was {chance}, number {rank:,} on the model’s list.",
            chance=name_probability(prediction, token_id),
            **values,
        )
    yield ExplanationSentence(text)
    if is_unlikely_token(prediction, token_id):
        (first,) = prediction.top(1)
        text = _(
            "The model itself expected {first}: {own}.",
            first=quote(trace.vocabulary[first]),
            own=name_probability(prediction, first),
        )
        yield ExplanationSentence(text)


def explain_prediction(
    trace: Trace, position: int, explanation: PredictionReasons, prediction: NextTokenDistribution
) -> Iterator[ExplanationSentence]:
    """Yield sentences on the reasons for a token after a position, from `explorer.analysis.prediction_reasons`."""
    token, contrast = (
        quote_token(trace.vocabulary[token_id]) for token_id in (explanation.token_id, explanation.contrast_id)
    )
    values = {
        "token": token,
        "rival": contrast,
        "probability": name_probability(prediction, explanation.token_id),
        "lead": format_number(abs(explanation.logit_difference)),
    }
    if reason := explanation.look_back:
        component = reason.component
        text = _(
            "The look back that adds most to {token}: layer {layer} head {head} at {key} ({effect} of its logit).",
            token=token,
            layer=component.layer,
            head=component.head,
            key=quote_token_in_text(trace.tokens, reason.key),
            effect=format_contribution(reason.effect),
        )
        total, change = explanation.look_back_head
        if change > -reason.effect / 2:  # so little falls without the head that the look back alone does not explain it
            clause = _(
                "The whole head adds {total}; without it the logit changes by {change}, as later parts change, too.",
                total=format_contribution(total),
                change=format_contribution(change),
            )
            text = f"{text} {clause}"
        yield _show_attention(text, reason, position, _head_ablation(component))
    if explanation.logit_difference >= 0:
        text = _("Why {token}, with probability {probability}? Its logit is {lead} above that of {rival}.", **values)
    else:
        text = _("{token} has probability {probability}: its logit is {lead} below that of {rival}.", **values)
    yield ExplanationSentence(text, {"view": "prediction", "query": position}, "prediction-parts")
    for reason in explanation.reasons:
        yield from _reason_clauses(trace, position, explanation, reason)
    if explanation.joint_cost is not None:
        yield _joint_clause(trace, position, explanation, explanation.joint_cost)
    if explanation.partner:
        yield _partner_clause(position, explanation, *explanation.partner)
    yield from _costliest_clauses(position, explanation)


def explain_prediction_in_story(
    trace: Trace,
    prediction: NextTokenDistribution,
    explanation: PredictionReasons,
    predict_without: Callable[[Intervention], NextTokenDistribution],
    first: Sequence[ExplanationSentence] = (),
) -> Iterator[ExplanationSentence]:
    """Yield at most three sentences in percent: the token's probabilities, the headline's look back, and it ablated.

    Args:
        predict_without: returns the same prediction with a component ablated, as the page shows it then.
        first: sentences in place of the probabilities.
    """
    token_id, token = explanation.token_id, quote_word(trace.vocabulary[explanation.token_id])
    own, chance = (format_percent(float(chances[token_id])) for chances in (prediction.plain, prediction.sampled))
    values = {"token": token, "chance": chance, "own": own}
    if own == chance:
        text = _("Chance of {token}: {chance}.", **values)
    else:
        text = _("Chance of {token}: {chance} with the settings now; {own} before temperature.", **values)
    yield from first or (ExplanationSentence(text),)
    for reason in [explanation.look_back] if explanation.look_back else explanation.reasons[:1]:
        component = reason.component
        if component.head is None:
            text = _("The feed-forward of layer {layer} adds most to its lead.", layer=component.layer)
        elif reason is not explanation.look_back:
            text = _("Layer {layer} head {head} adds most to its lead.", layer=component.layer, head=component.head)
        else:
            text = _(
                "The look back that adds most to its score: layer {layer} head {head} at {key}.",
                layer=component.layer,
                head=component.head,
                key=quote_word_in_text(trace.tokens, reason.key),
            )
        yield ExplanationSentence(text)
        if trace.edits:  # what is switched off already stands there
            continue
        before, after = (
            float(distribution.sampled[token_id]) for distribution in (prediction, predict_without(component.ablation))
        )
        yield ExplanationSentence(_describe_ablation(component, before, after), ablation=_head_ablation(component))


def _describe_ablation(component: ModelComponent, before: float, after: float) -> str:
    """Return a sentence on the chance without a component, which need not be lower."""
    shares, is_head = {"before": format_percent(before), "after": format_percent(after)}, component.head is not None
    change = 0 if shares["after"] == shares["before"] else 1 if after > before else -1
    return translate(ABLATION_TEXTS[is_head, change], **shares)


ABLATION_TEXTS = {  # by whether a head is ablated, and the sign of the change of the chance
    (True, 0): N_("Without this head the chance stays at {before}."),
    (False, 0): N_("Without it the chance stays at {before}."),
    (True, -1): N_("Without this head: {after} instead of {before}."),
    (False, -1): N_("Without it: {after} instead of {before}."),
    (True, 1): N_("What else the head does costs more: without the head {after} instead of {before}."),
    (False, 1): N_("Without it the chance grows: {after} instead of {before}. It does other things, too."),
}


def _reason_clauses(
    trace: Trace, position: int, explanation: PredictionReasons, reason: PredictionReason
) -> Iterator[ExplanationSentence]:
    component = reason.component
    values = {
        "layer": component.layer,
        "adds": format_number(reason.effect),
        "token": quote_token(trace.vocabulary[explanation.token_id]),
        "rival": quote_token(trace.vocabulary[explanation.contrast_id]),
    }
    is_named = explanation.look_back is not None and explanation.look_back.component == component
    if component.head is None:
        text = _("The feed-forward of layer {layer} adds {adds} to the logit difference {token} − {rival}.", **values)
        yield ExplanationSentence(text, _component_location(component, "feed_forward", position), "feed_forward-curve")
    else:
        text = _(
            "Layer {layer} head {head} adds {adds} to the logit difference {token} − {rival}; it looks most at {key} "
            "({place}), with weight {weight}.",
            **values,
            head=component.head,
            key=quote_token(trace.tokens[reason.key]),
            place=reason.key,
            weight=format_number(reason.weight),
        )
        yield _show_attention(text, reason, position)
    after = format_percent(2 ** (explanation.log2_p - reason.cost))
    if reason.cost >= DECISIVE_BITS:
        text = _("Switched off alone, it takes that probability down to {after}.", after=after)
    elif reason.cost <= -DECISIVE_BITS:
        text = _("Switched off alone, it lets that probability rise to {after}.", after=after)
    else:
        text = _("Switched off alone, it leaves that probability at {after}.", after=after)
    yield _show_ablation(text, component, position, "" if is_named else _head_ablation(component))


def _head_ablation(component: ModelComponent) -> str:
    return "" if component.head is None else str(component.ablation)


def _joint_clause(trace: Trace, position: int, explanation: PredictionReasons, together: float) -> ExplanationSentence:
    components = [reason.component for reason in explanation.reasons]
    text = _(
        "Switched off together, {parts} take that probability down to {after}: that costs {together} bits, where one "
        "by one they cost {sum} in sum.",
        parts=join_names(map(component_name, components)),
        after=format_percent(2 ** (explanation.log2_p - together)),
        together=format_number(together),
        sum=format_number(sum(reason.cost for reason in explanation.reasons)),
    )
    return ExplanationSentence(
        text, ablation_state_change(trace, position, components), "experiments-together_probability"
    )


def _partner_clause(
    position: int, explanation: PredictionReasons, partner: PredictionReason, both: float
) -> ExplanationSentence:
    first = explanation.reasons[0]
    text = _(
        "Two parts replace one another, {first} and {second}: switched off alone they cost {one} and {other} bits, "
        "together {both}.",
        first=component_name(first.component),
        second=component_name(partner.component),
        one=format_number(first.cost),
        other=format_number(partner.cost),
        both=format_number(both),
    )
    return _show_ablation(text, partner.component, position)


def _costliest_clauses(position: int, explanation: PredictionReasons) -> Iterator[ExplanationSentence]:
    component, bits = explanation.costliest
    if bits < DECISIVE_BITS:
        text = _(
            "No part decides it alone: switched off one by one, none costs more than {bits} bits.",
            bits=format_number(bits),
        )
        yield _show_ablation(text, component, position)
    elif component not in [reason.component for reason in explanation.reasons]:
        text = _(
            "What is missed most is {part}: without it {bits} bits are lost.",
            part=component_name(component),
            bits=format_number(bits),
        )
        yield _show_ablation(text, component, position)


def ablation_state_change(trace: Trace, position: int, components: Sequence[ModelComponent]) -> dict[str, Any]:
    """Return the state change that also ablates these components; it has no edits if a run cannot have so many."""
    interventions = (*trace.edits, *(component.ablation for component in components))
    state_change = {"view": "experiments", "query": position}
    return state_change | (
        {"edits": SEPARATOR.join(map(str, interventions))} if len(interventions) <= MAX_INTERVENTIONS else {}
    )


def component_name(component: ModelComponent) -> str:
    """Return the name of a head or feed-forward."""
    if component.head is None:
        return _("the feed-forward of layer {layer}", layer=component.layer)
    return _("layer {layer} head {head}", layer=component.layer, head=component.head)


def _component_location(component: ModelComponent, view: str, position: int) -> dict[str, Any]:
    return {"view": view, "layer": component.layer, "query": position} | (
        {} if component.head is None else {"head": component.head}
    )


def _show_attention(text: str, reason: PredictionReason, position: int, ablation: str = "") -> ExplanationSentence:
    """Return a sentence with the figure of a head's attention."""
    location = _component_location(reason.component, "attention", position) | {"key": reason.key, "pattern": "weight"}
    return ExplanationSentence(text, location, "attention-pattern", ablation)


def _show_ablation(text: str, component: ModelComponent, position: int, ablation: str = "") -> ExplanationSentence:
    """Return a sentence with the figure of a component's ablation."""
    figure_id = "experiments-sublayers" if component.head is None else "experiments-heads"
    return ExplanationSentence(text, _component_location(component, "experiments", position), figure_id, ablation)


def explain_redundancy(
    trace: Trace, position: int, redundancy: RedundantComponents, prediction: NextTokenDistribution
) -> Iterator[ExplanationSentence]:
    """Yield sentences on the redundant components after a position, from `explorer.analysis.prediction_reasons`."""
    values = {
        "token": quote_token(trace.vocabulary[redundancy.token_id]),
        "rival": quote_token(trace.vocabulary[redundancy.contrast_id]),
        "probability": name_probability(prediction, redundancy.token_id),
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
        "{token} has probability {probability}. {parts} add most to its lead over {rival}. Parts that stand in for one "
        "another cost more bits together than one by one. The clearest set of each size:",
        parts=_capitalise(join_names(map(component_name, redundancy.candidates))),
        **values,
    )
    yield ExplanationSentence(text, selection_change, figure_id)
    for component_set in redundancy.sets:
        text = _(
            "{parts}: one by one they cost {alone} bits, in sum {sum}. Together they cost {together}. This leaves that "
            "probability at {after}.",
            parts=_capitalise(join_names(map(component_name, component_set.components))),
            alone=", ".join(format_number(bits) for bits in component_set.single_costs),
            sum=format_number(sum(component_set.single_costs)),
            together=format_number(component_set.joint_cost),
            after=format_percent(2 ** (redundancy.log2_p - component_set.joint_cost)),
        )
        yield ExplanationSentence(
            text, ablation_state_change(trace, position, component_set.components), "experiments-together_probability"
        )


def _capitalise(text: str) -> str:
    """Return a text with its first letter capitalised."""
    return text[:1].upper() + text[1:]
