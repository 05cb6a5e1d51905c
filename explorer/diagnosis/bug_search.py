"""Search for known bugs with which the reference's formulas reproduce the module's values."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from itertools import combinations, takewhile
from typing import Any

from explorer.diagnosis.bugs import KNOWN_BUGS, STEP_BUGS
from explorer.diagnosis.bugs.bug import KnownBug
from explorer.diagnosis.deviation import Deviation
from explorer.diagnosis.reference_formulas import NORMS, Formulas
from explorer.diagnosis.segment_bugs import epsilon_bug, other_weight_bugs, sum_bug
from explorer.diagnosis.segments import PROBE, ModelSegment

PARALLEL_MAPS = {"attn.q", "attn.k", "attn.v", "ffn.gate_pre", "ffn.up"}  # maps that do not read one another's outputs
INTERMEDIATE_TAPS = (  # values between a sublayer's maps, in order
    *(f"attn.{name}" for name in ("q", "k", "v", "q_rot", "k_rot", "scores", "pattern", "z")),
    *(f"ffn.{name}" for name in ("gate_pre", "up", "gate")),
)


@dataclass(frozen=True)
class BugHypothesis:
    """Known bugs that together reproduce the module's values, and the formulas with these bugs."""

    bugs: tuple[KnownBug, ...]
    formulas: Formulas
    remaining_taps: tuple[str, ...]  # the taps that still differ


class BugSearch:
    """Search for the bugs of one segment. `formulas` include the bugs identified so far.

    Arguments are those of `SegmentDiagnosis`.
    """

    def __init__(
        self,
        scope: ModelSegment,
        formulas: Formulas,
        identified_bugs: list[KnownBug] | None,
        exhausted_taps: set[str] | None,
    ):
        self.scope, self.formulas = scope, formulas
        self.identified_bugs = [] if identified_bugs is None else identified_bugs
        self.exhausted_taps = set() if exhausted_taps is None else exhausted_taps
        self._map_deviations: dict[str, Deviation] = {}

    def deviation(self, tap: str, formulas: Formulas) -> Deviation:
        """Return the deviation of a tap's recorded value from the one that the formulas compute."""
        is_usual = tap not in formulas.linears and tap not in formulas.linear_inputs
        if is_usual and self.scope.input_tap(tap) in self.scope.tap_values:
            if tap not in self._map_deviations:  # a plain product does not depend on the formulas around it
                self._map_deviations[tap] = Deviation.between(
                    self.scope.tap_values[tap], self.scope.expected_value(tap, formulas)
                )
            return self._map_deviations[tap]
        return Deviation.between(self.scope.tap_values[tap], self.scope.expected_value(tap, formulas))

    def differing_taps(self, formulas: Formulas) -> list[str]:
        """Return the recorded taps that differ with these formulas, in order, including probes of norms."""
        return [
            tap for tap in self.scope.taps if tap in self.scope.tap_values and self.deviation(tap, formulas).differs
        ]

    def best_hypotheses(self, tap: str, wrong: list[str]) -> list[BugHypothesis]:
        """Return the hypotheses that repair a tap, break no other and leave the fewest taps differing.

        Several are returned where they do equally well. Identified bugs are tried first, alone and in pairs, then
        single bugs, then pairs.
        """
        reach = self.candidate_taps(tap)
        fits = [
            bug
            for bug in (*KNOWN_BUGS, *STEP_BUGS)
            if bug.applies_to(self.scope.config) and self.first_visible_tap(bug, reach)
        ]
        bugs, step_bugs = [bug for bug in fits if bug in KNOWN_BUGS], [bug for bug in fits if bug in STEP_BUGS]
        identified = [bug for bug in fits if bug in self.identified_bugs]
        hypotheses: list[BugHypothesis] = []
        for candidates in (
            as_singletons(identified),
            combinations(identified, 2),
            ((bug,) for bug in (*bugs, *step_bugs, *self._segment_bugs(tap, reach))),
            self._pairs(bugs, reach),
        ):
            hypotheses = hypotheses or list(self.iter_hypotheses(candidates, tap, wrong))
        hypotheses = list(
            {
                frozenset((bug.name, bug.values) for bug in hypothesis.bugs): hypothesis for hypothesis in hypotheses
            }.values()
        )
        fewest = min((len(hypothesis.remaining_taps) for hypothesis in hypotheses), default=0)
        hypotheses = [hypothesis for hypothesis in hypotheses if len(hypothesis.remaining_taps) == fewest]
        usual = [hypothesis for hypothesis in hypotheses if set(hypothesis.bugs) <= set(bugs)]
        return self._likeliest(usual or hypotheses, reach)

    def _segment_bugs(self, tap: str, reach: Sequence[str]) -> Iterator[KnownBug]:
        """Yield bugs that only this segment can have: another module's weight, another sum, another ε."""
        for reach_tap in reach:
            yield from other_weight_bugs(self.scope, reach_tap)
        if bug := sum_bug(self.scope, tap, self.formulas):
            yield bug
        if reach[0] in NORMS and (bug := epsilon_bug(self.scope, tap, self.formulas)):
            yield bug

    def _likeliest(self, hypotheses: list[BugHypothesis], reach: Sequence[str]) -> list[BugHypothesis]:
        """Keep, among equally good hypotheses, those that reproduce most recorded intermediate values of the sublayer.

        Of these, prefer those whose bug's first tap is a reproduced value, the earliest one.
        """
        if len(hypotheses) < 2:
            return hypotheses
        recorded = [self._recorded_intermediates(hypothesis.formulas, reach) for hypothesis in hypotheses]
        max_recorded = max(map(len, recorded))
        likely = [
            (hypothesis, values)
            for hypothesis, values in zip(hypotheses, recorded, strict=True)
            if len(values) == max_recorded
        ]
        with_tap = [
            (hypothesis.bugs[0].first_tap, hypothesis)
            for hypothesis, values in likely
            if hypothesis.bugs[0].first_tap in values
        ]
        first = next((tap for tap in INTERMEDIATE_TAPS if any(bug_tap == tap for bug_tap, _each in with_tap)), None)
        return [hypothesis for bug_tap, hypothesis in with_tap if bug_tap == first] or [
            hypothesis for hypothesis, _values in likely
        ]

    def _recorded_intermediates(self, formulas: Formulas, reach: Sequence[str]) -> set[str]:
        """Return the intermediate values of the sublayers that the module has as the formulas have them."""
        scope = self.scope
        values_by_sublayer = {tap.split(".")[0]: scope.intermediate_values(tap, formulas) for tap in reach}
        return {
            f"{sublayer}.{name}"
            for sublayer, values in values_by_sublayer.items()
            for name, value in values.items()
            if scope.recorded.contains(scope.layer, value, name == "scores")
        }

    def candidate_taps(self, tap: str) -> list[str]:
        """Return the tap and the unrecorded taps right before it: a bug in those is visible at this tap."""
        plain = tap.removesuffix(f".{PROBE}")
        taps = [candidate for candidate in self.scope.taps if not candidate.endswith(PROBE)]
        before = (
            tap
            for tap in reversed(taps[: taps.index(plain)])
            if tap not in (PARALLEL_MAPS & self.scope.tap_values.keys())
        )
        return [plain, *takewhile(lambda candidate: candidate not in self.scope.tap_values, before)]

    def first_visible_tap(self, bug: KnownBug, reach: Sequence[str]) -> str | None:
        """Return the first of some taps at which a bug is visible; None where it is visible at none."""
        roles = self.scope.roles
        return next((tap for tap in reach if tap in bug.visible_at or roles.get(tap) in bug.visible_at), None)

    def _pairs(self, bugs: Sequence[KnownBug], reach: Sequence[str]) -> Iterator[tuple[KnownBug, ...]]:
        """Yield pairs of bugs in different pieces of the formulas.

        At each tap, pairs are tried in one segment only (`exhausted_taps`); later segments try identified bugs.
        """
        if reach[0] in self.exhausted_taps:
            return
        right = (
            self._recorded_intermediates(self.formulas, reach) - PARALLEL_MAPS
        )  # these are seen before heads are split, too
        bugs = [bug for bug in bugs if bug.first_tap not in right]
        changes = [
            (bug, differing_formula_pieces(self.formulas, self._apply_bug(self.formulas, bug, reach))) for bug in bugs
        ]
        for (one, pieces), (other, others) in combinations(changes, 2):
            if not pieces & others:
                yield one, other
        self.exhausted_taps.add(reach[0])

    def _apply_bug(self, formulas: Formulas, bug: KnownBug, reach: Sequence[str]) -> Formulas:
        return bug.change(formulas, self.first_visible_tap(bug, reach))

    def iter_hypotheses(self, candidates, tap: str, wrong: list[str]) -> Iterator[BugHypothesis]:
        """Yield the combinations of bugs that explain a tap's deviation."""
        plain_tap, reach = tap.removesuffix(f".{PROBE}"), self.candidate_taps(tap)
        for bugs in candidates:
            formulas = self.formulas
            for bug in bugs:
                formulas = self._apply_bug(formulas, bug, reach)
            try:
                if self.deviation(tap, formulas).differs:
                    continue
                remaining = self.differing_taps(formulas)
            except RuntimeError:  # its shapes do not fit a model of these sizes
                continue
            spared = {f"{plain_tap}.{PROBE}"} - set(wrong)  # the norm's probe may be right although its output differs
            if set(remaining) - spared < set(wrong):
                yield BugHypothesis(tuple(bugs), formulas, tuple(remaining))


def as_singletons(bugs: Sequence[KnownBug]) -> Iterator[tuple[KnownBug, ...]]:
    """Yield each bug as a combination of its own."""
    return ((bug,) for bug in bugs)


def differing_formula_pieces(before: Any, after: Any) -> set[str]:
    """Return the names of the pieces in which two sets of formulas differ."""
    if before is after:
        return set()
    if isinstance(before, Mapping):
        pieces = {name: (before.get(name), after.get(name)) for name in {*before, *after}}
    elif is_dataclass(before) and type(before) is type(after):
        pieces = {field.name: (getattr(before, field.name), getattr(after, field.name)) for field in fields(before)}
    else:
        return {""}
    return {f"{name}.{piece}" for name, pair in pieces.items() for piece in differing_formula_pieces(*pair)}
