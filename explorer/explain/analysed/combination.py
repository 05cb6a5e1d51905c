"""What changes do to a next token one by one, in sum and together."""

import math

from explorer.analysis.combination import Combination, combination
from explorer.explain.analysed.distribution import probability
from explorer.explain.derivation import Derivation
from explorer.explain.notation import number, quoted, summed
from explorer.explain.place import at
from explorer.explain.point import element
from explorer.explain.source import Source
from explorer.explain.working import Input, Working, each_once, take
from explorer.language import N_, _, look_up
from explorer.tracing.comparison import Comparison

COMBINATION = "explorer/analysis/combination.py"
MEASURED = {"logit": N_("change of the logit"), "probability": N_("change of the probability")}


def of_change(comparison: Comparison, query: int, token_id: int, measure: str, place: int) -> Derivation:
    """What one of the changes does alone."""
    found = combination(comparison, query, token_id, measure)
    drawn, edit = element(found.effects, place), comparison.trace.edits[place]
    before, read = _captured(comparison, query, token_id, measure, changed=False)
    logit, ln_p = comparison.other.outcome(query, token_id, (edit,)).tolist()
    after = logit if measure == "logit" else math.exp(ln_p)
    again = Input(_("logits of a run with {edit}, at [{query}]", edit=edit, query=query), (), read.shape)
    source = Source(COMBINATION, "return self.alone - self.before")
    return _told(comparison, query, token_id, measure, drawn, _change(before, after, (read, again)), source)


def of_sum(comparison: Comparison, query: int, token_id: int, measure: str) -> Derivation:
    """The sum of what each of the changes does alone."""
    found = combination(comparison, query, token_id, measure)
    effects = [of_change(comparison, query, token_id, measure, i).working for i in range(len(found.effects))]
    terms = found.alone - _captured(comparison, query, token_id, measure, changed=False)[0]
    total = math.fsum(terms)
    working = Working(
        _("sum of what each change does alone"),
        lambda: f"{summed(terms)} = {number(total)}",
        total,
        each_once(read for effect in effects for read in effect.inputs),
    )
    source = Source(COMBINATION, "return float(self.effects.sum())")
    return _told(comparison, query, token_id, measure, found.sum, working, source)


def of_all(comparison: Comparison, query: int, token_id: int, measure: str) -> Derivation:
    """What all changes do together."""
    found = combination(comparison, query, token_id, measure)
    before, read = _captured(comparison, query, token_id, measure, changed=False)
    after, again = _captured(comparison, query, token_id, measure, changed=True)
    source = Source(COMBINATION, "return self.together - self.before")
    return _told(comparison, query, token_id, measure, found.joint, _change(before, after, (read, again)), source)


def of_interaction(comparison: Comparison, query: int, token_id: int, measure: str) -> Derivation:
    """By how much the effect of all exceeds the sum."""
    found: Combination = combination(comparison, query, token_id, measure)
    joint, total = (part(comparison, query, token_id, measure).working for part in (of_all, of_sum))
    value = joint.value - total.value
    working = Working(
        _("interaction = effect of all together − sum of the single ones"),
        lambda: f"{number(joint.value)} − {number(total.value)} = {number(value)}",
        value,
        total.inputs,
    )
    source = Source(COMBINATION, "return self.joint - self.sum")
    return _told(comparison, query, token_id, measure, found.interaction, working, source)


def _captured(comparison: Comparison, query: int, token_id: int, measure: str, changed: bool) -> tuple[float, Input]:
    logits, read = take(comparison.trace if changed else comparison.other, "logits", query)
    value = float(logits[token_id]) if measure == "logit" else probability(logits, token_id, ()).value
    return value, read


def _change(before: float, after: float, inputs: tuple[Input, ...]) -> Working:
    change = after - before
    return Working(
        _("changed − unchanged"),
        lambda: f"{number(after)} − {number(before)} = {number(change)}",
        change,
        inputs,
    )


def _told(
    comparison: Comparison, query: int, token_id: int, measure: str, drawn: float, working: Working, source: Source
) -> Derivation:
    token = quoted(comparison.trace.vocabulary[token_id])
    place = _("of {token} after {place}", token=token, place=at(comparison.trace, query))
    return Derivation(look_up(MEASURED[measure]), place, drawn, working, source)
