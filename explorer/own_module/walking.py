"""Down the values of a module in order: which differ from what the reference makes of those before, and why."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import permutations

import torch
from torch import Tensor

from explorer.analysis.rounding import tolerance
from explorer.own_module.formulas import Formulas
from explorer.own_module.slips import SLIPS
from explorer.own_module.slips.of_precision import reduced
from explorer.own_module.slips.slip import Slip
from explorer.own_module.steps import PROBE, Block, Scope
from explorer.tracing.diagnosis import Cause, Difference

ALLOWED = tolerance("float32")  # of a token's largest number
SMALLEST = 1e-30
ON_THE_WAY = "q", "k", "v", "q_rot", "k_rot", "scores", "pattern", "z"


@dataclass(frozen=True)
class Off:
    """How far a value is from what it should be.

    Attributes:
        largest: of the differences.
        scale: of what it should be, the largest.
        by_position: (T,) how many times as much as rounding explains.
    """

    largest: float
    scale: float
    by_position: Tensor

    @classmethod
    def of(cls, seen: Tensor, wanted: Tensor) -> "Off":
        if seen.shape != wanted.shape:
            return cls(float("inf"), 0.0, torch.full((len(seen),), float("inf")))
        same = (seen == wanted) | (seen.isnan() & wanted.isnan())
        apart = torch.where(same, 0.0, (seen - wanted).abs()).nan_to_num(float("inf"), float("inf"))
        sizes = torch.maximum(seen.abs(), wanted.abs()).nan_to_num(0.0, 0.0, 0.0).amax(-1)
        return cls(
            apart.max().item(),
            wanted.nan_to_num(0.0, 0.0, 0.0).abs().max().item(),
            apart.amax(-1) / (ALLOWED * sizes + SMALLEST),
        )

    @property
    def times(self) -> float:
        return self.by_position.max().item()

    @property
    def differs(self) -> bool:
        return not self.times <= 1


@dataclass(frozen=True)
class Mended:
    """The formulas with slips that make them give what the module has."""

    slips: tuple[Slip, ...]
    formulas: Formulas
    left: tuple[str, ...]  # the taps that still differ


class Walk:
    """Down one scope. `differences` are found in order; `formulas` are in the end those of the module, as far as they
    were found out.

    Args:
        found: the slips that were found before, which are tried first.
    """

    def __init__(self, scope: Scope, formulas: Formulas, found: Sequence[Slip] = ()):
        self.scope, self.formulas, self.found = scope, formulas, found
        self.first_off = {tap: self.off(tap, formulas) for tap in scope.taps if tap in scope.seen}
        self.differences = list(self._explained())

    def off(self, tap: str, formulas: Formulas) -> Off:
        return Off.of(self.scope.seen[tap], self.scope.expected(tap, formulas))

    def differing(self, formulas: Formulas) -> list[str]:
        """Taps in order; what a norm makes of other vectors counts where it is right on those of the run."""
        return [tap for tap in self.scope.taps if tap in self.scope.seen and self.off(tap, formulas).differs]

    def _explained(self) -> Iterator[tuple[Difference, tuple[Slip, ...]]]:
        given_up: set[str] = set()
        while wrong := [tap for tap in self.differing(self.formulas) if tap not in given_up]:
            tap, off = wrong[0], self.off(wrong[0], self.formulas)
            best = self._best(tap, wrong)
            if not best and (slip := self._in_fewer_bits(tap)):
                given_up |= {tap, f"{tap}.{PROBE}"}
                yield self._difference((slip,), tap, off), (slip,)
                continue
            if not best:
                given_up |= {tap, f"{tap}.{PROBE}"}
                yield self._unexplained(tap, off), ()
                continue
            self.formulas = best[0].formulas
            for slips in self._in_order(best, tap):
                yield self._difference(slips, tap, off), slips
        yield from self._silent()

    def _best(self, tap: str, wrong: list[str]) -> list[Mended]:
        """What mends a tap without harm to any other, and of that what mends most; several where they do as well."""
        plain = tap.removesuffix(f".{PROBE}")
        slips = [slip for slip in SLIPS if plain in slip.shows and slip.of(self.scope.config)]
        known = [slip for slip in slips if slip in self.found]
        mended: list[Mended] = []
        for candidates in (singly(known), permutations(known, 2), singly(slips), self._pairs(slips)):
            mended = mended or list(self._mended(candidates, tap, wrong))
        mended = list({frozenset(each.slips): each for each in mended}.values())
        least = min((len(each.left) for each in mended), default=0)
        return [each for each in mended if len(each.left) == least]

    def _pairs(self, slips: Sequence[Slip]) -> Iterator[tuple[Slip, ...]]:
        """Two slips at one place, looked for in the first block alone: in the others they are known then."""
        first = not isinstance(self.scope, Block) or self.scope.layer == 0
        return permutations(slips, 2) if first else iter(())

    def _mended(self, candidates, tap: str, wrong: list[str]) -> Iterator[Mended]:
        at = tap.removesuffix(f".{PROBE}")
        for slips in candidates:
            formulas = self.formulas
            for slip in slips:
                formulas = slip.change(formulas, at)
            if self.off(tap, formulas).differs:
                continue
            left = self.differing(formulas)
            if set(left) < set(wrong) or set(left) - {f"{at}.{PROBE}"} < set(wrong):
                yield Mended(tuple(slips), formulas, tuple(left))

    def _in_order(self, best: list[Mended], tap: str) -> Iterator[tuple[Slip, ...]]:
        """Of a pair of slips each by itself, in the order of their places; of several that do equally well, all."""
        if len(best) > 1 or len(best[0].slips) == 1:
            yield tuple(dict.fromkeys(slip for each in best for slip in each.slips))
            return
        for slip in sorted(best[0].slips, key=lambda slip: order_of(slip.place)):
            yield (slip,)

    def _in_fewer_bits(self, tap: str) -> Slip | None:
        if tap not in ("attn_norm", "ffn_norm", "final_norm"):
            return None
        whole = f"{self.scope.start}{tap}"
        x, gain = self.scope.seen_all.values.get(f"{whole}.in"), self.scope.weights.get(f"{whole}.weight")
        if x is None or gain is None:
            return None
        again = partial(self.scope.norm, tap, formulas=self.formulas)
        return reduced(self.scope.seen[tap], again(x), x, gain, again)

    def _difference(self, slips: tuple[Slip, ...], tap: str, off: Off) -> Difference:
        at = tap.removesuffix(f".{PROBE}")
        whole = f"{self.scope.start}{at}"
        cause = Cause(tuple(slip.name for slip in slips), tuple(slip.words for slip in slips))
        place = min((slip.place_at(whole) for slip in slips), key=lambda place: order_of(place.split(".", 2)[-1]))
        return Difference(place, whole, *self._numbers(off), cause, probed=self._shortened(tap))

    def _unexplained(self, tap: str, off: Off) -> Difference:
        at = tap.removesuffix(f".{PROBE}")
        whole = f"{self.scope.start}{at}"
        return Difference(
            whole, whole, *self._numbers(off), equal_to=self._last_equal(tap), probed=self._shortened(tap)
        )

    def _numbers(self, off: Off) -> tuple[float, float, tuple[int, ...]]:
        places = (off.by_position > 1).nonzero().flatten() % len(
            self.scope.seen_all.token_ids
        )  # vectors may come thrice
        return off.largest, off.scale, tuple(places.unique().tolist())

    def _shortened(self, tap: str) -> float:
        """How many times shorter the vectors are on which a norm differs, where it does not in the run."""
        if not tap.endswith(PROBE):
            return 0.0
        name = f"{self.scope.start}{tap.removesuffix(f'.{PROBE}')}"
        run, short = (self.scope.seen_all.values[f"{name}.{which}"] for which in ("in", f"{PROBE}.in"))
        return (run.norm() / short[: len(run)].norm()).item()

    def _last_equal(self, tap: str) -> str:
        """Of values on the way of an attention, the last that the module has; else the tap before."""
        if tap == "attn.z" and isinstance(self.scope, Block):
            found = self.scope.attention(self.formulas)
            held = [
                name
                for name in ON_THE_WAY
                if name in found and self.scope.seen_all.holds(self.scope.layer, found[name], causal=name == "scores")
            ]
            if held:
                return f"{self.scope.start}attn.{held[-1]}"
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


def singly(slips: Sequence[Slip]) -> Iterator[tuple[Slip, ...]]:
    return ((slip,) for slip in slips)


def order_of(place: str) -> int:
    """Of a tap in its block, where it stands."""
    order = ["attn_norm", *(f"attn.{name}" for name in ON_THE_WAY), "resid_mid", "ffn_norm", "ffn.gate_pre", "ffn.gate"]
    return order.index(place) if place in order else len(order)
