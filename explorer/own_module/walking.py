"""Down the values of a module in order: which differ from what the reference makes of those before, and why."""

from collections.abc import Iterator
from functools import partial

from explorer.own_module.block import Block
from explorer.own_module.formulas import NORMS, Formulas
from explorer.own_module.mending import ON_THE_WAY, Mended, Mender, singly
from explorer.own_module.off import Off
from explorer.own_module.slips import SLIPS
from explorer.own_module.slips.of_precision import reduced
from explorer.own_module.slips.slip import Slip
from explorer.own_module.steps import PROBE, Scope
from explorer.tracing.diagnosis import Cause, Difference

WITHIN = {  # taps of ours that a module's parts do not show, before that at which they do
    "attn.z": ON_THE_WAY[3:8],
    "ffn.hidden": ("ffn.gate", "ffn.hidden"),
}


class Walk(Mender):
    """Down one scope. `differences` are found in order; `formulas` are in the end those of the module, as far as they
    were found out.

    Args:
        found: the slips that were found before, which are tried first; those of this scope are added.
        hopeless: taps of earlier scopes at which no two slips together were found; likewise.
    """

    def __init__(self, scope: Scope, formulas: Formulas, found: list[Slip] | None = None, hopeless: set | None = None):
        super().__init__(scope, formulas, found, hopeless)
        scope.choose(formulas)
        self.first_off = {tap: self.off(tap, formulas) for tap in scope.taps if tap in scope.seen}
        self.differences = list(self._explained())

    def _explained(self) -> Iterator[tuple[Difference, tuple[Slip, ...]]]:
        given_up: set[str] = set()
        while wrong := [tap for tap in self.differing(self.formulas) if tap not in given_up]:
            tap, off = wrong[0], self.off(wrong[0], self.formulas)
            best = self.best(tap, wrong)
            if not best and (slips := self._in_fewer_bits(tap)):
                given_up |= {tap, f"{tap}.{PROBE}"}
                for slip in slips:
                    yield self._difference((slip,), tap, off), (slip,)
                continue
            if not best:
                given_up |= {tap, f"{tap}.{PROBE}"}
                yield self._unexplained(tap, off), ()
                continue
            self.formulas = best[0].formulas
            if f"{tap}.{PROBE}" not in wrong:  # the norm itself is right, and what is made of it is not
                given_up.add(f"{tap}.{PROBE}")
            self.found += [slip for each in best for slip in each.slips if slip not in self.found]
            for slips in self._in_order(best, tap):
                yield self._difference(slips, tap, off), slips
        yield from self._silent()

    def _in_order(self, best: list[Mended], tap: str) -> Iterator[tuple[Slip, ...]]:
        """Of a pair of slips each by itself, in the order of their places; of several that do equally well, all."""
        if len(best) > 1 or len(best[0].slips) == 1:
            yield tuple(dict.fromkeys(slip for each in best for slip in each.slips))
            return
        reach = self.reach(tap)
        for slip in sorted(best[0].slips, key=lambda slip: self._order(self._place(slip, self.shown(slip, reach)))):
            yield (slip,)

    def _in_fewer_bits(self, tap: str) -> tuple[Slip, ...]:
        """That a norm is computed in fewer bits, alone or beside another slip of it; () where it is not."""
        if tap not in NORMS:
            return ()
        whole = f"{self.scope.start}{tap}"
        x, gain = self.scope.seen_all.values.get(f"{whole}.in"), self.scope.weights.get(f"{whole}.weight")
        if x is None or gain is None:
            return ()
        slips = [slip for slip in SLIPS if tap in slip.shows and slip.of(self.scope.config)]
        for others in ((), *singly(slips)):
            formulas = self.formulas
            for slip in others:
                formulas = slip.change(formulas, tap)
            again = partial(self.scope.norm, tap, formulas=formulas)
            if slip := reduced(self.scope.seen[tap], again(x), x, gain, again):
                self.formulas = formulas
                return (*others, slip)
        return ()

    def _difference(self, slips: tuple[Slip, ...], tap: str, off: Off) -> Difference:
        at = tap.removesuffix(f".{PROBE}")
        whole = f"{self.scope.start}{at}"
        names, words = tuple(slip.name for slip in slips), tuple(slip.words for slip in slips)
        cause = Cause(names, words, tuple(dict(slip.values) for slip in slips))
        reach = self.reach(tap)
        place = min((self._place(slip, self.shown(slip, reach) or at) for slip in slips), key=self._order)
        return Difference(place, whole, *self._numbers(off), cause, probed=self._shortened(tap, off))

    def _place(self, slip: Slip, shown: str) -> str:
        """The whole name of the first tap that a slip changes."""
        taps = {role: tap for tap, role in self.scope.roles.items()}
        place = taps.get(slip.place, slip.place) or shown
        if place == "ffn.gate" and not self.scope.config.is_gated:
            place = "ffn.hidden"
        return f"{self.scope.start}{place}"

    def _order(self, whole: str) -> int:
        """Where a tap stands in its scope."""
        order = [each for tap in self.scope.taps for each in WITHIN.get(tap, (tap,))]
        tap = whole.removeprefix(self.scope.start)
        return order.index(tap) if tap in order else len(order)

    def _unexplained(self, tap: str, off: Off) -> Difference:
        at = tap.removesuffix(f".{PROBE}")
        whole = f"{self.scope.start}{at}"
        return Difference(
            whole, whole, *self._numbers(off), equal_to=self._last_equal(tap), probed=self._shortened(tap, off)
        )

    def _numbers(self, off: Off) -> tuple[float, float, tuple[int, ...]]:
        places = (off.by_position > 1).nonzero().flatten() % len(
            self.scope.seen_all.token_ids
        )  # vectors may come thrice
        return off.largest, off.scale, tuple(places.unique().tolist())

    def _shortened(self, tap: str, off: Off) -> float:
        """How many times shorter the vectors are on which a norm differs most, where it does not in the run."""
        if not tap.endswith(PROBE):
            return 0.0
        name = f"{self.scope.start}{tap.removesuffix(f'.{PROBE}')}"
        run, short = (self.scope.seen_all.values[f"{name}.{which}"] for which in ("in", f"{PROBE}.in"))
        sizes = short.view(-1, *run.shape)
        worst = int(off.by_position.nan_to_num(0.0).view(len(sizes), -1).amax(-1).argmax())
        return (run.norm() / sizes[worst].norm()).item()

    def _last_equal(self, tap: str) -> str:
        """Of values on the way of a sublayer, the last that the module has; else the tap before."""
        seen = self._seen_on_the_way(self.formulas, [tap])
        if held := [name for name in ON_THE_WAY if name in seen]:
            return f"{self.scope.start}{held[-1]}"
        before = [name for name in self.scope.taps[: self.scope.taps.index(tap)] if not name.endswith(PROBE)]
        return f"{self.scope.start}{before[-1]}" if before else ""

    def _silent(self) -> Iterator[tuple[Difference, tuple[Slip, ...]]]:
        """What changes no later value: rotations by which all queries and keys are turned alike."""
        scope = self.scope
        if not isinstance(scope, Block) or not scope.config.rotates(scope.layer) or "attn.q" not in scope.seen:
            return
        right = scope.attention(self.formulas)["q_rot"]
        if scope.seen_all.holds(scope.layer, right):
            return
        for slip in (slip for slip in SLIPS if slip.place == "attn.q_rot"):
            formulas = slip.change(self.formulas, "attn.z")
            other = scope.attention(formulas)["q_rot"]
            if scope.seen_all.holds(scope.layer, other) and not self.off_if_seen("attn.z", formulas):
                merged = [value.transpose(0, 1).flatten(-2) for value in (other, right)]
                yield self._difference((slip,), "attn.z", Off.of(*merged)), (slip,)
                return

    def off_if_seen(self, tap: str, formulas: Formulas) -> bool:
        return tap in self.scope.seen and self.off(tap, formulas).differs
