"""How much more the parts of a changed run add to a logit than they did."""

from explorer.explain.analysed.attribution import head_part, logit_part
from explorer.explain.derivation import Derivation
from explorer.explain.notation import number
from explorer.explain.working import Working, each_once
from explorer.language import _
from explorer.tracing.comparison import Comparison


def grown_head(
    comparison: Comparison, position: int, token_id: int, rival_id: int | None, layer: int, head: int
) -> Derivation:
    """Of a head."""
    return _grown(*(head_part(run, position, token_id, rival_id, layer, head) for run in comparison.runs))


def grown_part(
    comparison: Comparison, position: int, token_id: int, rival_id: int | None, part: str, layer: int
) -> Derivation:
    """Of one of the `PARTS` of a logit."""
    return _grown(*(logit_part(run, position, token_id, rival_id, part, layer) for run in comparison.runs))


def _grown(after: Derivation, before: Derivation) -> Derivation:
    value = after.recomputed - before.recomputed
    working = Working(
        _("changed − unchanged, each {formula}", formula=after.working.symbols.removeprefix("= ")),
        lambda: f"{number(after.recomputed)} − {number(before.recomputed)} = {number(value)}",
        value,
        each_once((*after.working.inputs, *before.working.inputs)),
    )
    return Derivation(after.name, after.place, after.value - before.value, working, after.source)
