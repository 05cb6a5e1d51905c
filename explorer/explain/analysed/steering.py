"""What lies along a direction, and what adding it does."""

from explorer.analysis.steering import Effects, cosines, depths
from explorer.explain.analysed.arithmetic import cosine
from explorer.explain.derivation import Derivation
from explorer.explain.notation import number
from explorer.explain.place import as_text, at
from explorer.explain.point import element, nth
from explorer.explain.source import Source
from explorer.explain.working import Input, Working, take
from explorer.language import _
from explorer.state.interventions import Recipe
from explorer.tracing.trace import Trace

STEERING = "explorer/analysis/steering.py"


def along(trace: Trace, recipe: Recipe, depth: int, position: int) -> Derivation:
    """The cosine of a token's stream at a depth with a direction."""
    unit = trace.direction(recipe)
    drawn = element(cosines(trace, unit), depth, position)
    x, read = take(trace, nth(depths(trace), depth), position)
    working = cosine((x, read), (unit, Input(recipe.words(as_text(trace)), (), unit.shape)), ("x", "u"))
    place = _("of {token}", token=at(trace, position))
    return Derivation(
        _("cosine with the direction"), place, drawn, working, Source(STEERING, "return np.divide(streams @")
    )


def effect(trace: Trace, found: Effects, place: int) -> Derivation:
    """What adding a direction does after one of the examples, by their place there: each logit is run again."""
    drawn = element(found.changes, place)
    prompt = found.prompts[place]
    leads = []
    for edits in ((), (found.edit,)):
        token, rival = (
            trace.outcome(len(prompt) - 1, each, edits, token_ids=prompt)[0]
            for each in (found.token_id, found.rival_id)
        )
        leads.append(float(token - rival))
    before, after = leads
    inputs = tuple(
        Input(told, (), (trace.config.vocab_size,))
        for told in (_("logits of a run with {edit}", edit=found.edit.place), _("logits of a run as it is"))
    )
    numbers = f"{number(after)} − {number(before)} = {number(after - before)}"
    working = Working(_("changed − unchanged"), lambda: numbers, after - before, inputs)
    return Derivation(
        _("change of the lead"),
        as_text(trace)(prompt),
        drawn,
        working,
        Source(STEERING, "return self.after - self.before"),
    )
