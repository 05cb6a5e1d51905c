"""Changes to a run as text, as in "blocks.2.attn.z.1@3-5*zero" or "rope.angles*base*500".

That is the value, its part, the positions after an @, the operation, the name that some need, and the amount.
"""

import re
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import replace

from explorer.language import _
from explorer.state.errors import UserError
from explorer.state.interventions.clamp import Clamp
from explorer.state.interventions.direction import Add, Remove
from explorer.state.interventions.edges import Drop, Mask
from explorer.state.interventions.from_other import FromOther, Patch, PatchMean
from explorer.state.interventions.intervention import Intervention
from explorer.state.interventions.mean import Mean
from explorer.state.interventions.norm import Norm
from explorer.state.interventions.places import Positions
from explorer.state.interventions.positions import Base, Shift
from explorer.state.interventions.scale import Scale, Zero
from model.config import ModelConfig

MOST_EDITS = 16  # of one run
BETWEEN = "~"  # edits in a text
STAR = re.compile(r"(?<!blocks\.)\*")  # one that does not stand for all layers
# In the order in which they act at one tap, whatever order they were given in: first where tokens stand, then what
# computes the value in another way, then what changes the value that was computed.
KINDS = {
    kind.operation: kind
    for kind in (Shift, Base, Norm, Mask, Drop, Mean, Patch, PatchMean, Scale, Zero, Clamp, Remove, Add)
}


def Edit(
    tap: str,
    operation: str,
    amount: float = 0.0,
    index: int | None = None,
    *,
    positions: Positions | str | int | Iterable[int] | None = None,
    by: str = "",
    source: Hashable = None,
) -> Intervention:
    """The intervention of the kind that is called `operation`, one of `KINDS`; UserError where there is none.

    Args:
        positions: those that are changed, numbers or text like "3-5.9"; None: all, those to come as well.
        by: of a kind that needs one, the name of a direction or of a norm.
        source: of a kind that takes values of another run, that run's `Trace`.
    """
    if operation not in KINDS:
        raise UserError(_("an edit is one of {kinds}, got {got!r}", kinds=", ".join(KINDS), got=operation[:80]))
    made = KINDS[operation](tap, amount, index, Positions.of(positions), by)
    if source is None:
        return made
    if not isinstance(made, FromOther):
        raise UserError(_("{kind!r} takes nothing from another run: leave out its source", kind=operation))
    return replace(made, source=source)


def parse_edit(text: str) -> Intervention:
    """The intervention that `str` wrote; UserError where it is none."""
    place, *rest = STAR.split(text)
    operation, *rest = rest or [""]
    named = operation in KINDS and KINDS[operation].names
    by = rest.pop(0) if named and rest else ""
    if not operation or len(rest) > 1:
        raise UserError(_("an edit is written tap*operation or tap*operation*amount, got {got!r}", got=text[:80]))
    place, at, positions = place.partition("@")
    tap, _dot, index = place.rpartition(".")
    tap, index = (tap, int(index)) if re.fullmatch("[0-9]{1,9}", index) else (place, None)
    try:
        amount = float(rest[0]) if rest else 0.0
    except ValueError:
        raise UserError(_("the amount of an edit is a number, got {got!r}", got=rest[0][:80])) from None
    return Edit(tap, operation, amount, index, positions=positions if at else None, by=by)


def parse_edits(edits: str | Sequence[str]) -> tuple[Intervention, ...]:
    """Edits from their texts, or from one text joined by "~"; UserError where they are none, too many or repeated."""
    texts = edits.split(BETWEEN) if isinstance(edits, str) and edits else edits or ()
    if not isinstance(texts, list | tuple) or not all(isinstance(text, str) for text in texts):
        raise UserError(_("edits are texts"))
    if len(texts) > MOST_EDITS:
        raise UserError(_("a run has at most {most} edits, got {got}", most=MOST_EDITS, got=len(texts)))
    parsed = tuple(map(parse_edit, texts))
    if len({edit.known_by for edit in parsed}) < len(parsed):
        raise UserError(_("a run has each edit of a value once, got one twice"))
    return parsed


def in_order(edits: Iterable[Intervention], config: ModelConfig) -> list[Intervention]:
    """As they act in a model, one after another: each changes one value, and none is there twice."""
    order = list(KINDS)
    each = (edit if tap == edit.tap else replace(edit, tap=tap) for edit in edits for tap in edit.taps_in(config))
    return sorted(dict.fromkeys(each), key=lambda edit: order.index(edit.operation))
