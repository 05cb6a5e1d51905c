"""Tasks to do on the page, checked by the page's current state."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from explorer.analysis.head_scores import HEAD_SCORES
from explorer.explain.notation import format_number, quote_token
from explorer.lessons.quantities import (
    LessonCondition,
    LessonQuantity,
    QuantityContext,
    parse_condition,
)
from explorer.lessons.yaml_blocks import LessonError, MappingWithLines, validate_mapping_fields
from explorer.translations import _


@dataclass(frozen=True)
class TaskCheckResult:
    """The result of a task's check: whether it is done, and a sentence."""

    is_done: bool
    text: str


@dataclass(frozen=True)
class FindHeadTask:
    """Select a head with at least this score."""

    score: str
    at_least: float

    def check(self, step: QuantityContext, now: QuantityContext) -> TaskCheckResult:
        selection, score = now.selection, LessonQuantity("head_score", {"score": self.score}).evaluate(now)
        values = {
            "layer": selection.layer,
            "head": selection.head,
            "score": format_number(score),
            "least": format_number(self.at_least),
        }
        text = _("You chose layer {layer} head {head}: its score is {score}; it needs at least {least}.", **values)
        return TaskCheckResult(score >= self.at_least, text)


@dataclass(frozen=True)
class FindPromptTask:
    """Write a text for which a condition holds."""

    when: LessonCondition

    def check(self, step: QuantityContext, now: QuantityContext) -> TaskCheckResult:
        if now.run.token_ids == step.run.token_ids:
            return TaskCheckResult(False, _("This is still the text of the lesson: change it, and press Run."))
        conditions = self.when.arguments if self.when.name == "all" else [self.when]
        if self.when.holds(now):
            return TaskCheckResult(True, _praise(conditions, now))
        texts = dict.fromkeys(_describe_condition(condition, conditions, now) for condition in conditions)
        return TaskCheckResult(
            False, " ".join(text for text in texts if text) or _("It does not hold for this text yet.")
        )


def _praise(conditions: list[LessonCondition], context: QuantityContext) -> str:
    """Return a sentence on a text for which all conditions hold, with the number that one is about."""
    for quantity in (bounds[0] for condition in conditions if (bounds := _bounds(condition))):
        if quantity.name == "mean_surprisal":
            value = format_number(quantity.evaluate(context))
            return _("Well done: your text has a surprisal of {value} bits a token.", value=value)
        if quantity.name == "probability" and quantity.arguments.get("rank") == 1:
            value = format_number(quantity.evaluate(context))
            return _("Well done: after your text the likeliest token has probability {value}.", value=value)
    return _("Well done: it holds for your text.")


def _describe_condition(condition: LessonCondition, others: list[LessonCondition], context: QuantityContext) -> str:
    """Return what of a condition holds of the text and what is wanted; "" for a kind that has no sentence."""
    bounds = _bounds(condition)
    if bounds is None:
        return ""
    quantity, value = bounds[0], bounds[0].evaluate(context)
    same = [other for other in others if (_bounds(other) or (None,))[0] == quantity]
    is_met = all(other.holds(context) for other in same)
    if quantity.name == "tokens":
        if is_met:
            return _("The number of tokens is right.")
        return _("It has {value} tokens; it needs {wanted}.", value=f"{value:,.0f}", wanted=_format_count_range(same))
    values = {"value": format_number(value), "bound": f"{bounds[1]:g}"}
    if quantity.name == "mean_surprisal" and condition.name == "more":
        if is_met:
            return _("The surprisal is high enough.")
        return _("Its surprisal is {value} bits a token; it needs more than {bound}.", **values)
    if quantity.name == "probability" and quantity.arguments.get("rank") == 1 and condition.name == "more":
        if is_met:
            return _("The probability is high enough.")
        return _("The likeliest token has probability {value}; it needs more than {bound}.", **values)
    return ""


def _bounds(condition: LessonCondition) -> tuple[LessonQuantity, float] | None:
    """Return the quantity that a condition compares with a number, and the number; None for another condition."""
    if condition.name not in ("more", "less") or condition.arguments[1].name != "number":
        return None
    return condition.arguments[0], condition.arguments[1].arguments["value"]


def _format_count_range(conditions: list[LessonCondition]) -> str:
    """Format the whole numbers that conditions on one count admit."""
    bounds = {condition.name: _bounds(condition)[1] for condition in conditions}
    low, high = (f"{bounds[name] + step:,.0f}" if name in bounds else "" for name, step in (("more", 1), ("less", -1)))
    if not low or not high:
        return _("at least {count}", count=low) if low else _("at most {count}", count=high)
    if bounds["less"] - bounds["more"] == 3:
        return _("{low} or {high}", low=low, high=high)
    return _("{low} to {high}", low=low, high=high)


@dataclass(frozen=True)
class AblateHeadsTask:
    """Change the likeliest token by ablating at most `max_heads` heads, and nothing else."""

    max_heads: int

    def check(self, step: QuantityContext, now: QuantityContext) -> TaskCheckResult:
        interventions, vocabulary = now.run.edits, now.trace.vocabulary
        ablations = [
            intervention
            for intervention in interventions
            if str(intervention).partition(".attn.z.")[2].endswith("*zero")
        ]
        if not interventions:
            return TaskCheckResult(False, _("No head is ablated yet."))
        if len(ablations) < len(interventions):
            return TaskCheckResult(False, _("Something other than heads was changed: undo that."))
        if len(ablations) > self.max_heads:
            return TaskCheckResult(
                False, _("{count} heads are ablated; use at most {most}.", count=len(ablations), most=self.max_heads)
            )
        before = now.replace({"edits": ""}).prediction.top(1)[0]
        after = now.prediction.top(1)[0]
        tokens = {"before": quote_token(vocabulary[before]), "after": quote_token(vocabulary[after])}
        if before == after:
            return TaskCheckResult(False, _("{before} is still the likeliest token.", before=tokens["before"]))
        return TaskCheckResult(True, _("{before} was the likeliest token; now it is {after}.", **tokens))


Task = FindHeadTask | FindPromptTask | AblateHeadsTask


def _parse_find_head(spec: MappingWithLines) -> FindHeadTask:
    validate_mapping_fields(spec, {"score": str, "at_least": float}, ("score", "at_least"))
    if spec["score"] not in HEAD_SCORES:
        raise LessonError(spec.lines["score"], f"“score” is one of {', '.join(HEAD_SCORES)}, got {spec['score']!r:.60}")
    return FindHeadTask(spec["score"], float(spec["at_least"]))


def _parse_find_prompt(spec: MappingWithLines) -> FindPromptTask:
    return FindPromptTask(parse_condition(spec, spec.line))


def _parse_ablate_heads(spec: MappingWithLines) -> AblateHeadsTask:
    validate_mapping_fields(spec, {"most": int}, ("most",))
    if spec["most"] < 1:
        raise LessonError(spec.line, f"“most” is how many heads may be ablated, got {spec['most']}")
    return AblateHeadsTask(spec["most"])


TASKS: dict[str, Callable[[MappingWithLines], Any]] = {
    "find_head": _parse_find_head,
    "find_prompt": _parse_find_prompt,
    "silence_heads": _parse_ablate_heads,
}
