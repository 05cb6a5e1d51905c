"""Which slips in the reference's formulas make them give what a module has."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from itertools import combinations, takewhile
from typing import Any

from explorer.own_module.formulas import Formulas
from explorer.own_module.off import Off
from explorer.own_module.slips import SLIPS
from explorer.own_module.slips.slip import Slip
from explorer.own_module.steps import PROBE, Scope


@dataclass(frozen=True)
class Mended:
    """The formulas with slips that make them give what the module has."""

    slips: tuple[Slip, ...]
    formulas: Formulas
    left: tuple[str, ...]  # the taps that still differ


class Mender:
    """The formulas of one scope, as far as those of the module were found out. Arguments are those of `Walk`."""

    def __init__(self, scope: Scope, formulas: Formulas, found: list[Slip] | None, hopeless: set[str] | None):
        self.scope, self.formulas = scope, formulas
        self.found = [] if found is None else found
        self.hopeless = set() if hopeless is None else hopeless
        self._of_maps: dict[str, Off] = {}

    def off(self, tap: str, formulas: Formulas) -> Off:
        if tap not in formulas.linears and self.scope.read_by(tap) in self.scope.seen:
            if tap not in self._of_maps:  # a product, whatever the formulas around it are
                self._of_maps[tap] = Off.of(self.scope.seen[tap], self.scope.expected(tap, formulas))
            return self._of_maps[tap]
        return Off.of(self.scope.seen[tap], self.scope.expected(tap, formulas))

    def differing(self, formulas: Formulas) -> list[str]:
        """Taps in order; what a norm makes of other vectors counts where it is right on those of the run."""
        return [tap for tap in self.scope.taps if tap in self.scope.seen and self.off(tap, formulas).differs]

    def best(self, tap: str, wrong: list[str]) -> list[Mended]:
        """What mends a tap without harm to any other, and of that what mends most; several where they do as well."""
        reach = self.reach(tap)
        slips = [slip for slip in SLIPS if slip.of(self.scope.config) and self.shown(slip, reach)]
        known = [slip for slip in slips if slip in self.found]
        mended: list[Mended] = []
        for candidates in (singly(known), combinations(known, 2), singly(slips), self._pairs(slips, reach)):
            mended = mended or list(self.mended(candidates, tap, wrong))
        mended = list({frozenset(each.slips): each for each in mended}.values())
        least = min((len(each.left) for each in mended), default=0)
        return [each for each in mended if len(each.left) == least]

    def reach(self, tap: str) -> list[str]:
        """The tap itself, and those right before it that are not seen: what goes wrong in them shows at it."""
        plain = tap.removesuffix(f".{PROBE}")
        taps = [each for each in self.scope.taps if not each.endswith(PROBE)]
        before = reversed(taps[: taps.index(plain)])
        return [plain, *takewhile(lambda each: each not in self.scope.seen, before)]

    def shown(self, slip: Slip, reach: Sequence[str]) -> str | None:
        """The first of some taps at which a slip shows."""
        roles = self.scope.roles
        return next((tap for tap in reach if tap in slip.shows or roles.get(tap) in slip.shows), None)

    def _pairs(self, slips: Sequence[Slip], reach: Sequence[str]) -> Iterator[tuple[Slip, ...]]:
        """Two slips behind one tap, in different pieces of the formulas; where that led nowhere in a block, it is not
        tried again in a later one."""
        if reach[0] in self.hopeless:
            return
        changes = [(slip, changed(self.formulas, self._with(self.formulas, slip, reach))) for slip in slips]
        for (one, pieces), (other, others) in combinations(changes, 2):
            if not pieces & others:
                yield one, other
        self.hopeless.add(reach[0])  # nobody asks on once there is one

    def _with(self, formulas: Formulas, slip: Slip, reach: Sequence[str]) -> Formulas:
        return slip.change(formulas, self.shown(slip, reach))

    def mended(self, candidates, tap: str, wrong: list[str]) -> Iterator[Mended]:
        at, reach = tap.removesuffix(f".{PROBE}"), self.reach(tap)
        for slips in candidates:
            formulas = self.formulas
            for slip in slips:
                formulas = self._with(formulas, slip, reach)
            if self.off(tap, formulas).differs:
                continue
            left = self.differing(formulas)
            if set(left) < set(wrong) or set(left) - {f"{at}.{PROBE}"} < set(wrong):
                yield Mended(tuple(slips), formulas, tuple(left))


def singly(slips: Sequence[Slip]) -> Iterator[tuple[Slip, ...]]:
    return ((slip,) for slip in slips)


def changed(before: Any, after: Any) -> set[str]:
    """Which pieces of formulas a slip puts others in the place of."""
    if before is after:
        return set()
    if isinstance(before, Mapping):
        found = {name: (before.get(name), after.get(name)) for name in {*before, *after}}
    elif is_dataclass(before) and type(before) is type(after):
        found = {field.name: (getattr(before, field.name), getattr(after, field.name)) for field in fields(before)}
    else:
        return {""}
    return {f"{name}.{piece}" for name, pair in found.items() for piece in changed(*pair)}
