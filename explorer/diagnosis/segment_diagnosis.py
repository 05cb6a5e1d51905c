"""Diagnosis of a segment: the values that differ from those the reference computes from the preceding ones, and why."""

from collections.abc import Iterator
from functools import partial

from explorer.diagnosis.block_segment import BlockSegment
from explorer.diagnosis.bug_search import INTERMEDIATE_TAPS, BugHypothesis, BugSearch, as_singletons
from explorer.diagnosis.bugs import KNOWN_BUGS
from explorer.diagnosis.bugs.bug import KnownBug
from explorer.diagnosis.bugs.norm_precision import find_reduced_precision
from explorer.diagnosis.deviation import Deviation
from explorer.diagnosis.reference_formulas import NORMS, Formulas
from explorer.diagnosis.segments import PROBE, ModelSegment
from explorer.tracing.diagnosis_report import BugExplanation, Difference

HIDDEN_TAPS = {  # intermediate taps that have no submodule -> under the tap at which their bugs are visible
    "attn.z": INTERMEDIATE_TAPS[3:8],
    "ffn.hidden": ("ffn.gate", "ffn.hidden"),
}


class SegmentDiagnosis(BugSearch):
    """The diagnosis of one segment: `differences` in order, and the `formulas` with the bugs identified.

    Args:
        identified_bugs: bugs of earlier segments, which are tried first; this segment's are appended.
        exhausted_taps: taps of earlier segments at which all pairs of bugs were tried; this segment's are added.
    """

    def __init__(
        self,
        scope: ModelSegment,
        formulas: Formulas,
        identified_bugs: list[KnownBug] | None = None,
        exhausted_taps: set | None = None,
    ):
        super().__init__(scope, formulas, identified_bugs, exhausted_taps)
        scope.choose_values(formulas)
        self.first_deviations = {tap: self.deviation(tap, formulas) for tap in scope.taps if tap in scope.tap_values}
        self.differences = list(self._explain_differences())

    def _explain_differences(self) -> Iterator[tuple[Difference, tuple[KnownBug, ...]]]:
        skipped: set[str] = set()
        while wrong := [tap for tap in self.differing_taps(self.formulas) if tap not in skipped]:
            tap, deviation = wrong[0], self.deviation(wrong[0], self.formulas)
            best = self.best_hypotheses(tap, wrong)
            if not best and (bugs := self._find_reduced_precision(tap)):
                skipped |= {tap, f"{tap}.{PROBE}"}
                for bug in bugs:
                    yield self._difference((bug,), tap, deviation), (bug,)
                continue
            if not best:
                skipped |= {tap, f"{tap}.{PROBE}"}
                yield self._unexplained_difference(tap, deviation), ()
                continue
            self.formulas = best[0].formulas
            if f"{tap}.{PROBE}" not in wrong:  # the norm's probe is right; only its input or use differs
                skipped.add(f"{tap}.{PROBE}")
            self.identified_bugs += [
                bug for hypothesis in best for bug in hypothesis.bugs if bug not in self.identified_bugs
            ]
            for bugs in self._order_bugs(best, tap):
                yield self._difference(bugs, tap, deviation), bugs
        yield from self._find_cancelling_bugs()

    def _order_bugs(self, best: list[BugHypothesis], tap: str) -> Iterator[tuple[KnownBug, ...]]:
        """Yield each bug of a pair by itself, in the order of their taps; or all equally good bugs together."""
        if len(best) > 1 or len(best[0].bugs) == 1:
            yield tuple(dict.fromkeys(bug for hypothesis in best for bug in hypothesis.bugs))
            return
        reach = self.candidate_taps(tap)
        for bug in sorted(
            best[0].bugs, key=lambda bug: self._tap_index(self._first_tap(bug, self.first_visible_tap(bug, reach)))
        ):
            yield (bug,)

    def _find_reduced_precision(self, tap: str) -> tuple[KnownBug, ...]:
        """Return the bug that a norm is computed in lower precision, after another of its bugs if any; () for none."""
        if tap not in NORMS:
            return ()
        norm_name = f"{self.scope.start}{tap}"
        x, gain = self.scope.recorded.values.get(f"{norm_name}.in"), self.scope.weights.get(f"{norm_name}.weight")
        if x is None or gain is None:
            return ()
        norm_bugs = [bug for bug in KNOWN_BUGS if tap in bug.visible_at and bug.applies_to(self.scope.config)]
        for other_bugs in ((), *as_singletons(norm_bugs)):
            formulas = self.formulas
            for bug in other_bugs:
                formulas = bug.change(formulas, tap)
            norm = partial(self.scope.norm, tap, formulas=formulas)
            if bug := find_reduced_precision(self.scope.tap_values[tap], norm(x), x, gain, norm):
                self.formulas = formulas
                return (*other_bugs, bug)
        return ()

    def _difference(self, bugs: tuple[KnownBug, ...], tap: str, deviation: Deviation) -> Difference:
        plain_tap = tap.removesuffix(f".{PROBE}")
        full_name = f"{self.scope.start}{plain_tap}"
        names, texts = tuple(bug.name for bug in bugs), tuple(bug.text for bug in bugs)
        cause = BugExplanation(names, texts, tuple(dict(bug.values) for bug in bugs))
        reach = self.candidate_taps(tap)
        first_tap = min(
            (self._first_tap(bug, self.first_visible_tap(bug, reach) or plain_tap) for bug in bugs), key=self._tap_index
        )
        return Difference(
            first_tap, full_name, *self._deviation_fields(deviation), cause, probed=self._probe_scale(tap, deviation)
        )

    def _first_tap(self, bug: KnownBug, visible_tap: str) -> str:
        """Return the full name of the first tap that a bug changes."""
        taps = {role: tap for tap, role in self.scope.roles.items()}
        first_tap = taps.get(bug.first_tap, bug.first_tap) or visible_tap
        if first_tap == "ffn.gate" and not self.scope.config.is_gated:
            first_tap = "ffn.hidden"
        return f"{self.scope.start}{first_tap}"

    def _tap_index(self, full_name: str) -> int:
        """Return the index of a tap in its segment."""
        order = [hidden_tap for tap in self.scope.taps for hidden_tap in HIDDEN_TAPS.get(tap, (tap,))]
        tap = full_name.removeprefix(self.scope.start)
        return order.index(tap) if tap in order else len(order)

    def _unexplained_difference(self, tap: str, deviation: Deviation) -> Difference:
        plain_tap = tap.removesuffix(f".{PROBE}")
        full_name = f"{self.scope.start}{plain_tap}"
        return Difference(
            full_name,
            full_name,
            *self._deviation_fields(deviation),
            equal_to=self._last_equal_tap(tap),
            probed=self._probe_scale(tap, deviation),
        )

    def _deviation_fields(self, deviation: Deviation) -> tuple[float, float, tuple[int, ...]]:
        positions = (deviation.by_position > 1).nonzero().flatten() % len(
            self.scope.recorded.token_ids
        )  # probes repeat the run's vectors
        return deviation.largest, deviation.scale, tuple(positions.unique().tolist())

    def _probe_scale(self, tap: str, deviation: Deviation) -> float:
        """Return how many times shorter the probe that deviates most is than the run's vectors; 0 if none."""
        if not tap.endswith(PROBE):
            return 0.0
        name = f"{self.scope.start}{tap.removesuffix(f'.{PROBE}')}"
        run, short = (self.scope.recorded.values[f"{name}.{suffix}"] for suffix in ("in", f"{PROBE}.in"))
        sizes = short.view(-1, *run.shape)
        worst = int(deviation.by_position.nan_to_num(0.0).view(len(sizes), -1).amax(-1).argmax())
        return (run.norm() / sizes[worst].norm()).item()

    def _last_equal_tap(self, tap: str) -> str:
        """Return the last intermediate value of the sublayer that the module reproduces; else the tap before."""
        recorded = self._recorded_intermediates(self.formulas, [tap])
        if intermediates := [name for name in INTERMEDIATE_TAPS if name in recorded]:
            return f"{self.scope.start}{intermediates[-1]}"
        before = [name for name in self.scope.taps[: self.scope.taps.index(tap)] if not name.endswith(PROBE)]
        return f"{self.scope.start}{before[-1]}" if before else ""

    def _find_cancelling_bugs(self) -> Iterator[tuple[Difference, tuple[KnownBug, ...]]]:
        """Yield bugs that change no later value: rotations that affect all queries and keys alike."""
        scope = self.scope
        if (
            not isinstance(scope, BlockSegment)
            or not scope.config.has_rope(scope.layer)
            or "attn.q" not in scope.tap_values
        ):
            return
        expected = scope.attention(self.formulas)["q_rot"]
        if scope.recorded.contains(scope.layer, expected):
            return
        for bug in (bug for bug in KNOWN_BUGS if bug.first_tap == "attn.q_rot"):
            formulas = bug.change(self.formulas, "attn.z")
            alternative = scope.attention(formulas)["q_rot"]
            if scope.recorded.contains(scope.layer, alternative) and not self.has_deviation("attn.z", formulas):
                merged = [value.transpose(0, 1).flatten(-2) for value in (alternative, expected)]
                yield self._difference((bug,), "attn.z", Deviation.between(*merged)), (bug,)
                return

    def has_deviation(self, tap: str, formulas: Formulas) -> bool:
        return tap in self.scope.tap_values and self.deviation(tap, formulas).differs
