"""Search for bugs with which the reference's formulas reproduce the module's values."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from itertools import combinations, takewhile
from typing import Any

import torch
from torch import Tensor

from explorer.diagnosis.bugs import KNOWN_BUGS, STEP_BUGS
from explorer.diagnosis.bugs.norms_and_feed_forward import change_norm_pieces, replace_linear
from explorer.diagnosis.model_segments import PROBE, Deviation, ModelSegment
from explorer.diagnosis.reference_formulas import NORMS, KnownBug, ModelFormulas, linear
from explorer.explain.notation import format_number
from explorer.translations import N_

MAX_TERMS = 3
SNAP_TOLERANCE = 1e-4  # a factor this near to a twelfth is one


def sum_bug(scope: ModelSegment, tap: str, formulas: ModelFormulas) -> KnownBug | None:
    """Return the bug that a value is another sum of its terms than expected; None where it is not."""
    terms = scope.terms(tap, formulas)
    fitted = fit_sum(scope.tap_values[tap], terms)
    expected = fit_sum(scope.expected_value(tap, formulas), terms)
    if fitted is None or expected is None or fitted == expected:
        return None
    scaled_tap = scope.scaled_tap(fitted)
    if scaled_tap or len(fitted) == len(expected) == 1 and [*fitted] == [*expected]:
        factor = fitted[scaled_tap] if scaled_tap else next(iter(fitted.values()))
        name, text, values = "multiplied", N_("it is multiplied by {factor}"), (("factor", format_number(factor)),)
    else:
        name, text = "another_sum", N_("it is {found}, not {meant}")
        values = ("found", format_sum(fitted)), ("meant", format_sum(expected))

    def change(formulas: ModelFormulas, _tap: str) -> ModelFormulas:
        return scope.with_sum(formulas, tap, fitted)

    return KnownBug(name, text, scaled_tap, (tap,), change, values=values)


def fit_sum(value: Tensor, terms: Mapping[str, Tensor]) -> dict[str, float] | None:
    """Return the factors of the fewest terms whose sum is the value within rounding; None where there are none.

    Args:
        value: (T, D).
        terms: each (T, D).
    """
    if not torch.isfinite(value).all():
        return None
    target = value.double().flatten()[:, None]
    terms = {name: term for name, term in terms.items() if term.shape == value.shape and torch.isfinite(term).all()}
    for count in range(1, MAX_TERMS + 1):
        for names in combinations(terms, count):
            columns = torch.stack([terms[name].double().flatten() for name in names], -1)
            factors = torch.linalg.lstsq(columns, target).solution.flatten().tolist()
            terms_to_factors = {name: snap_to_twelfth(factor) for name, factor in zip(names, factors, strict=True)}
            fitted = sum(factor * terms[name] for name, factor in terms_to_factors.items())
            if all(terms_to_factors.values()) and not Deviation.between(value, fitted).differs:
                return terms_to_factors
    return None


def snap_to_twelfth(factor: float) -> float:
    """Return the nearest twelfth if a factor is close to it, else the factor."""
    nearest = round(factor * 12) / 12
    return nearest if abs(nearest - factor) < SNAP_TOLERANCE else factor


def format_sum(terms: Mapping[str, float]) -> str:
    """Format a sum of named terms with their factors."""
    text = ""
    for name, factor in terms.items():
        sign = "−" if factor < 0 else "+" if text else ""
        times = "" if abs(factor) == 1 else f"{format_number(abs(factor))} · "
        text += f" {sign} {times}{name}" if text else f"{sign}{times}{name}"
    return text


def other_weight_bugs(scope: ModelSegment, tap: str) -> Iterator[KnownBug]:
    """Yield the bugs that a map or norm uses another module's weight.

    Candidates are weights of the same shape in the same layer, and of the same kind in other layers.
    """
    own_name = scope.owner(tap)
    weight = scope.weights.get(f"{own_name}.weight")
    if weight is None:
        return
    for name, other in scope.weights.items():
        stem, _dot, kind = name.rpartition(".")
        if kind != "weight" or stem == own_name or other.shape != weight.shape or not is_related_module(own_name, stem):
            continue
        text = N_("the weight of {other} is used, not its own")
        is_norm = own_name.endswith(NORMS)
        if is_norm:
            change = change_norm_pieces({"weights": lambda _name, stem=stem: stem})
        elif tap == "embed":

            def change(formulas, _tap, stem=stem):
                return replace(formulas, table=stem)

        else:
            change = replace_linear(lambda x, _name, weights, stem=stem: linear(x, stem, weights))
        yield KnownBug("anothers_weight", text, "" if is_norm else tap, (tap,), change, values=(("other", stem),))


def is_related_module(first: str, second: str) -> bool:
    """Return whether two modules share a layer or a name within their layers, or one is outside the layers."""
    first_parts, second_parts = first.split("."), second.split(".")
    outside = {"final_norm", "token_embedding", "lm_head"}
    return (
        first_parts[0] == second_parts[0] == "blocks"
        and (first_parts[1] == second_parts[1] or first_parts[2:] == second_parts[2:])
        or (bool({first, second} & outside))
    )


def epsilon_bug(scope: ModelSegment, tap: str, formulas: ModelFormulas) -> KnownBug | None:
    """Return the bug that a norm has another ε, estimated from its probes; None where there is none."""
    norm_tap = tap.removesuffix(f".{PROBE}")
    norm_name = f"{scope.start}{norm_tap}"
    x, y = (scope.recorded.values.get(f"{norm_name}.{PROBE}.{end}") for end in ("in", "out"))
    gain, shift = scope.weights.get(f"{norm_name}.weight"), scope.weights.get(f"{norm_name}.bias")
    if x is None or gain is None or y.shape != x.shape:
        return None
    squares = formulas.norms[norm_tap].centre(x.double()).square().mean(-1)
    quotients = ((y.double() - (0 if shift is None else shift)) / gain).square().mean(-1)
    epsilons = (squares / quotients - squares)[(quotients > 0.01) & (quotients < 0.99)]
    if not len(epsilons) or not epsilons.median() > 0:
        return None
    eps = float(f"{epsilons.median().item():.2e}")
    change = change_norm_pieces({"epsilon": lambda _eps, _width: eps})
    return KnownBug(
        f"epsilon_{eps:.2e}", N_("ε is {epsilon}"), "", (norm_tap,), change, values=(("epsilon", format_number(eps)),)
    )


PARALLEL_MAPS = {"attn.q", "attn.k", "attn.v", "ffn.gate_pre", "ffn.up"}  # maps that do not read one another's outputs
INTERMEDIATE_TAPS = (  # values between a sublayer's maps, in order
    *(f"attn.{name}" for name in ("q", "k", "v", "q_rot", "k_rot", "scores", "pattern", "z")),
    *(f"ffn.{name}" for name in ("gate_pre", "up", "gate")),
)


@dataclass(frozen=True)
class BugHypothesis:
    """Known bugs that together reproduce the module's values, and the formulas with these bugs."""

    bugs: tuple[KnownBug, ...]
    formulas: ModelFormulas
    remaining_taps: tuple[str, ...]  # the taps that still differ


@dataclass
class BugSearch:
    """Search for the bugs of one segment.

    Attributes:
        formulas: with the bugs identified so far.
        identified_bugs: bugs of earlier segments, which are tried first; this segment's are appended.
        exhausted_taps: taps of earlier segments at which all pairs of bugs were tried; this segment's are added.
    """

    scope: ModelSegment
    formulas: ModelFormulas
    identified_bugs: list[KnownBug] = field(default_factory=list)
    exhausted_taps: set[str] = field(default_factory=set)
    _map_deviations: dict[str, Deviation] = field(default_factory=dict, init=False)

    def deviation(self, tap: str, formulas: ModelFormulas) -> Deviation:
        """Return the deviation of a tap's recorded value from the one that the formulas compute."""
        is_usual = tap not in formulas.linears and tap not in formulas.linear_inputs
        if is_usual and self.scope.input_tap(tap) in self.scope.tap_values:
            if tap not in self._map_deviations:  # a plain product does not depend on the formulas around it
                self._map_deviations[tap] = Deviation.between(
                    self.scope.tap_values[tap], self.scope.expected_value(tap, formulas)
                )
            return self._map_deviations[tap]
        return Deviation.between(self.scope.tap_values[tap], self.scope.expected_value(tap, formulas))

    def differing_taps(self, formulas: ModelFormulas) -> list[str]:
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

    def _recorded_intermediates(self, formulas: ModelFormulas, reach: Sequence[str]) -> set[str]:
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

    def _apply_bug(self, formulas: ModelFormulas, bug: KnownBug, reach: Sequence[str]) -> ModelFormulas:
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
        pieces = {each.name: (getattr(before, each.name), getattr(after, each.name)) for each in fields(before)}
    else:
        return {""}
    return {f"{name}.{piece}" for name, pair in pieces.items() for piece in differing_formula_pieces(*pair)}
