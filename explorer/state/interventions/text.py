"""Changes to a run as text, as in "blocks.2.attn.z.1*zero" or "rope.angles*base*500": place, operation, amount."""

import re
from collections.abc import Sequence

from explorer.language import _
from explorer.state.errors import UserError
from explorer.state.interventions.intervention import Intervention
from explorer.state.interventions.positions import Base, Shift
from explorer.state.interventions.scale import Scale, Zero

MOST_EDITS = 16  # of one run
BETWEEN = "~"  # edits in a text
# In the order in which they act at one tap, whatever order they were given in: first where tokens stand.
KINDS = {kind.operation: kind for kind in (Shift, Base, Scale, Zero)}


def Edit(tap: str, operation: str, amount: float = 0.0, index: int | None = None) -> Intervention:
    """The intervention of the kind that is called `operation`, one of `KINDS`; UserError where there is none."""
    if operation not in KINDS:
        raise UserError(_("an edit is one of {kinds}, got {got!r}", kinds=", ".join(KINDS), got=operation[:80]))
    return KINDS[operation](tap, amount, index)


def parse_edit(text: str) -> Intervention:
    """The intervention that `str` wrote; UserError where it is none."""
    place, *operation = text.split("*")
    if not 1 <= len(operation) <= 2:
        raise UserError(_("an edit is written tap*operation or tap*operation*amount, got {got!r}", got=text[:80]))
    tap, _dot, index = place.rpartition(".")
    tap, index = (tap, int(index)) if re.fullmatch("[0-9]{1,9}", index) else (place, None)
    try:
        amount = float(operation[1]) if len(operation) > 1 else 0.0
    except ValueError:
        raise UserError(_("the amount of an edit is a number, got {got!r}", got=operation[1][:80])) from None
    return Edit(tap, operation[0], amount, index)


def parse_edits(edits: str | Sequence[str]) -> tuple[Intervention, ...]:
    """Edits from their texts, or from one text joined by "~"; UserError where they are none, too many or repeated."""
    texts = edits.split(BETWEEN) if isinstance(edits, str) and edits else edits or ()
    if not isinstance(texts, list | tuple) or not all(isinstance(text, str) for text in texts):
        raise UserError(_("edits are texts"))
    if len(texts) > MOST_EDITS:
        raise UserError(_("a run has at most {most} edits, got {got}", most=MOST_EDITS, got=len(texts)))
    parsed = tuple(map(parse_edit, texts))
    if len({(edit.place, edit.operation) for edit in parsed}) < len(parsed):
        raise UserError(_("a run has each edit of a value once, got one twice"))
    return parsed
