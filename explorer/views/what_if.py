"""What a view lets a reader change of the run."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from explorer.analysis.steering import chosen_direction
from explorer.explain.notation import quoted
from explorer.language import _, look_up
from explorer.state.errors import UserError
from explorer.state.interventions import (
    Base,
    Clamp,
    Edge,
    FromOther,
    Intervention,
    Norm,
    Positions,
    Shift,
)
from explorer.state.selection import Selection
from explorer.tracing.comparison import Comparison
from explorer.tracing.donation import check_donor
from explorer.tracing.trace import Trace
from explorer.views.explained import explained_token

BY_DIRECTION = "{direction}"  # the one that is chosen


@dataclass(frozen=True)
class Scope:
    """How much of the model an intervention holds for.

    Attributes:
        title: in a list, to be looked up, with fields of the selection in braces.
        tap, index: of the intervention.
    """

    title: str
    tap: str
    index: int | str | None = None


@dataclass(frozen=True)
class WhatIf:
    """An intervention and the amounts it can have, for a slider; for a switch where it takes none: 0 off, 1 on. Of one
    with scopes the amount is the number of that in which it holds, from 1.

    Attributes:
        title: beside the slider, to be looked up; in it and in other texts, fields of the selection stand in braces,
            `token`, the id of the explained token, and `word`, the token itself.
        tap, kind: of the intervention.
        default: the amount at which nothing is changed.
        minimum, maximum, step: of the amount; of its log₁₀ the step, where `log`.
        log: whether the slider moves by factors.
        index: of the intervention, or the field of the selection that says it.
        positions, by: of the intervention.
        scopes: of a switch, the choices of a list in its place, from the narrowest, which `tap` and `index` are of.
        amount: of a switch whose intervention has one, or the field of the selection that says it.
        without: a value that a model which is offered this lacks.
        here: the chosen token's position, where the same can be done there alone; and by how much it is.
    """

    title: str
    tap: str
    kind: type[Intervention]
    default: float = 0.0
    minimum: float = 0.0
    maximum: float = 1.0
    step: float = 1.0
    log: bool = False
    index: int | str | None = None
    positions: str | None = None
    by: str = ""
    scopes: tuple[Scope, ...] = ()
    amount: float | str = 0.0
    without: str = ""
    here: str | None = None
    amount_here: float = 0.0

    @property
    def is_switch(self) -> bool:
        return self.kind.least == self.kind.most or issubclass(self.kind, Edge)

    def edit(self, amount: float, here: bool = False) -> Intervention:
        """The intervention by an amount; a switch that is on, whatever the amount is."""
        positions = Positions.of(here and self.here or self.positions)
        amount = self.amount if self.is_switch else amount
        return self.kind(self.tap, amount, self.index, positions, self.by)

    def texts(self, here: bool = False) -> tuple[str, str]:
        """The intervention's text but for a slider's amount, and how all begin that it takes the place of."""
        edit = self.edit(self.default, here)
        return str(edit) if self.is_switch else edit.known_by, edit.known_by

    def texts_of_scopes(self) -> list[str]:
        """The intervention's text in each scope."""
        return [str(replace(self, tap=scope.tap, index=scope.index).edit(1)) for scope in self.scopes]

    def present(self, trace: Trace, here: bool = False) -> float:
        """By how much it is in a run."""
        if self.scopes:
            made = {str(edit) for edit in trace.edits}
            return float(max((i for i, text in enumerate(self.texts_of_scopes(), 1) if text in made), default=0))
        text, known_by = self.texts(here)
        if self.is_switch:
            return float(any(str(edit) == text for edit in trace.edits))
        return next((edit.amount for edit in trace.edits if edit.known_by == known_by), self.default)

    def place(self, amount: float) -> float:
        """Where on the slider an amount is, which runs from `place(minimum)` to `place(maximum)`."""
        return math.log10(amount) if self.log else amount


def offered(
    what_ifs: Sequence[WhatIf], trace: Trace, selection: Selection, two: Comparison | None = None
) -> list[tuple[WhatIf, float]]:
    """Those that the model of a run has something for, with its numbers, and the amount each has in the run.

    Args:
        two: the run and another, where there is one to take values from.
    """
    offers = [chosen(what_if, trace, selection) for what_if in what_ifs]
    offers = list(filter(None, (taken(offer, two) for offer in offers)))
    offers = [fitted(offer, trace, selection) for offer in offers if offer.tap in trace and offer.without not in trace]
    offers = [offer for offer in offers if offer.maximum > offer.minimum and can_be(offer, trace)]
    return [(replace(offer, amount_here=offer.present(trace, here=True)), offer.present(trace)) for offer in offers]


def chosen(what_if: WhatIf, trace: Trace, selection: Selection) -> WhatIf:
    known = selection.as_dict()
    if what_if.kind is Norm:
        _blocks, _dot, name = what_if.tap.rpartition(".")
        known["norm"] = name if name == what_if.tap else _("{name} of layer {layer}", name=name, layer=selection.layer)
    elif what_if.by == BY_DIRECTION:
        recipe = chosen_direction(trace, selection.direction)
        known |= {"direction": str(recipe)}
    elif what_if.by:
        token_id = explained_token(trace, selection)
        known |= {"token": token_id, "word": quoted(trace.vocabulary[token_id])}
    filled = {name: getattr(what_if, name) for name in ("tap", "positions", "by", "without", "here")}
    texts = {name: text.format(**known) for name, text in filled.items() if text}
    numbers = {name: known.get(getattr(what_if, name), getattr(what_if, name)) for name in ("index", "amount")}
    scopes = tuple(
        Scope(look_up(scope.title, **known), scope.tap.format(**known), known.get(scope.index, scope.index))
        for scope in what_if.scopes
    )
    return replace(what_if, title=look_up(what_if.title, **known), scopes=scopes, **texts, **numbers)


def fitted(what_if: WhatIf, trace: Trace, selection: Selection) -> WhatIf:
    config = trace.config
    if what_if.kind is Base:
        theta = config.rope_theta
        least, most = min(what_if.minimum, theta), max(what_if.maximum, theta)
        return replace(what_if, default=theta, minimum=least, maximum=most)
    if what_if.kind is Shift and config.position == "learned":  # it knows no positions beyond its table
        return replace(what_if, maximum=min(what_if.maximum, config.context_length - len(trace)))
    if what_if.kind is Clamp:  # as it is at the chosen token
        value = float(f"{(trace.baseline or trace)[what_if.tap][selection.query, what_if.index]:.3g}")
        least, most = min(what_if.minimum, value), max(what_if.maximum, value)
        return replace(what_if, default=value, minimum=least, maximum=most)
    return what_if


def taken(what_if: WhatIf, two: Comparison | None) -> WhatIf | None:
    """What takes a value of the other run, everywhere or here, as far as that run has it; None where it has not."""
    if not issubclass(what_if.kind, FromOther):
        return what_if
    if two is None or not _can_take(two, what_if.edit(1)):
        return None
    return what_if if _can_take(two, what_if.edit(1, here=True)) else replace(what_if, here=None)


def _can_take(two: Comparison, edit: FromOther) -> bool:
    own, others = two.prompt_ids
    donor = replace(two.other, token_ids=others)
    try:
        check_donor(replace(edit, pins=two.pins), two.trace.config, two.trace.tokens[: len(own)], donor)
    except UserError:
        return False
    return True


def can_be(what_if: WhatIf, trace: Trace) -> bool:
    """Whether the model has what it changes, and it changes anything."""
    try:
        what_if.edit(what_if.default).check(trace.config, trace.values)
    except UserError:
        return False
    return not (what_if.kind is Norm and what_if.by == trace.config.norm)
