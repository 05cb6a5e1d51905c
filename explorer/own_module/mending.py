"""Which slips in the reference's formulas make them give what a module has."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from itertools import combinations, takewhile
from typing import Any

from explorer.own_module.candidates import epsilon_slip, neighbour_slips, sum_slip
from explorer.own_module.formulas import NORMS, Formulas
from explorer.own_module.off import Off
from explorer.own_module.slips import SLIPS, STEP_SLIPS
from explorer.own_module.slips.slip import Slip
from explorer.own_module.steps import PROBE, Scope

SIDE_BY_SIDE = {"attn.q", "attn.k", "attn.v", "ffn.gate_pre", "ffn.up"}  # none of which reads another
ON_THE_WAY = (  # values between a sublayer's maps, in order
    *(f"attn.{name}" for name in ("q", "k", "v", "q_rot", "k_rot", "scores", "pattern", "z")),
    *(f"ffn.{name}" for name in ("gate_pre", "up", "gate")),
)


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
        is_usual = tap not in formulas.linears and tap not in formulas.reads
        if is_usual and self.scope.read_by(tap) in self.scope.seen:
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
        fits = [slip for slip in (*SLIPS, *STEP_SLIPS) if slip.of(self.scope.config) and self.shown(slip, reach)]
        slips, steps = [slip for slip in fits if slip in SLIPS], [slip for slip in fits if slip in STEP_SLIPS]
        known = [slip for slip in fits if slip in self.found]
        mended: list[Mended] = []
        for candidates in (
            singly(known),
            combinations(known, 2),
            ((slip,) for slip in (*slips, *steps, *self._of_scope(tap, reach))),
            self._pairs(slips, reach),
        ):
            mended = mended or list(self.mended(candidates, tap, wrong))
        mended = list({frozenset((slip.name, slip.values) for slip in each.slips): each for each in mended}.values())
        least = min((len(each.left) for each in mended), default=0)
        mended = [each for each in mended if len(each.left) == least]
        usual = [each for each in mended if set(each.slips) <= set(slips)]
        return self._likeliest(usual or mended, reach)

    def _of_scope(self, tap: str, reach: Sequence[str]) -> Iterator[Slip]:
        """Slips that this scope alone can have: of other weights, other sums."""
        for each in reach:
            yield from neighbour_slips(self.scope, each)
        if slip := sum_slip(self.scope, tap, self.formulas):
            yield slip
        if reach[0] in NORMS and (slip := epsilon_slip(self.scope, tap, self.formulas)):
            yield slip

    def _likeliest(self, mended: list[Mended], reach: Sequence[str]) -> list[Mended]:
        """Of several that do equally well those with which most of the sublayer's own values were seen."""
        if len(mended) < 2:
            return mended
        seen = [self._seen_on_the_way(each.formulas, reach) for each in mended]
        most = max(map(len, seen))
        likely = [(each, values) for each, values in zip(mended, seen, strict=True) if len(values) == most]
        held = [(each.slips[0].place, each) for each, values in likely if each.slips[0].place in values]
        first = next((tap for tap in ON_THE_WAY if any(place == tap for place, _each in held)), None)
        return [each for place, each in held if place == first] or [each for each, _values in likely]

    def _seen_on_the_way(self, formulas: Formulas, reach: Sequence[str]) -> set[str]:
        """The values between a sublayer's maps that the module has where formulas have them."""
        scope = self.scope
        ways = {tap.split(".")[0]: scope.on_the_way(tap, formulas) for tap in reach}
        return {
            f"{sublayer}.{name}"
            for sublayer, values in ways.items()
            for name, value in values.items()
            if scope.seen_all.holds(scope.layer, value, name == "scores")
        }

    def reach(self, tap: str) -> list[str]:
        """The tap itself, and those right before it that are not seen: what goes wrong in them shows at it."""
        plain = tap.removesuffix(f".{PROBE}")
        taps = [each for each in self.scope.taps if not each.endswith(PROBE)]
        before = (
            tap for tap in reversed(taps[: taps.index(plain)]) if tap not in (SIDE_BY_SIDE & self.scope.seen.keys())
        )
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
        right = self._seen_on_the_way(self.formulas, reach) - SIDE_BY_SIDE  # these are seen before heads are split, too
        slips = [slip for slip in slips if slip.place not in right]
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
            try:
                if self.off(tap, formulas).differs:
                    continue
                left = self.differing(formulas)
            except RuntimeError:  # its shapes do not fit a model of these sizes
                continue
            spared = {f"{at}.{PROBE}"} - set(wrong)  # the norm itself may be right, and what is made of it not
            if set(left) - spared < set(wrong):
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
