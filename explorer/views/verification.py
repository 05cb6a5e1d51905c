"""Verification of a panel's numbers: a badge below its figure, and the derivation of a clicked number."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Literal

import numpy as np

from explorer.analysis.logit_lens import check_last_depth
from explorer.architecture.residual_stream import block_lens_points
from explorer.explain.captured import RecomputationCheck, check_captured_value, derive, input_names
from explorer.explain.captured.formulas import active_interventions
from explorer.explain.derivation import ClickedPoint, Derivation, largest_error, tolerance
from explorer.explain.notation import format_number, format_six_digits, join_names, token_formatter
from explorer.state.selection import Selection
from explorer.tracing.comparison import Comparison
from explorer.tracing.trace import Trace
from explorer.translations import N_, _, translate


@dataclass(frozen=True)
class Verification:
    """The result of recomputing a panel's numbers.

    Attributes:
        state: "recomputed" if all agree but for rounding, "off" if one does not, "unchecked" if nothing was
            compared.
        words: the main result.
        details: which values were recomputed, and from what.
    """

    state: Literal["recomputed", "off", "unchecked"]
    words: str
    details: str = ""

    @classmethod
    def from_checks(
        cls, checks: Mapping[str, RecomputationCheck], text: str, details: str, *runs: Trace
    ) -> "Verification":
        """Return the verification of runs from named checks.

        Args:
            text: the main result if all checks passed.
            details: which values were recomputed, and from what.
        """
        if checks and any(run.is_lazy for run in runs):
            lazy_text = _("values inside a block were recomputed from its input when you looked at them")
            details = f"{details} · {lazy_text}"
        if checks and runs[0].dtype != "float32":
            tolerance_text = _(
                "tolerance of {dtype}: off by at most {percent} per cent of the terms of a number",
                dtype=runs[0].dtype,
                percent=format_number(100 * tolerance(runs[0].dtype)),
            )
            details = f"{details} · {tolerance_text}"
        if not all(check.is_within_tolerance for check in checks.values()):
            return cls("off", format_failures(checks, runs[0].dtype), details)
        return cls("recomputed" if checks else "unchecked", text, details)

    def as_dict(self) -> dict[str, str]:
        return asdict(self)


STATES = ("off", "unchecked", "recomputed")  # the worst first


def worse_verification(first: Verification, second: Verification) -> Verification:
    """Return the worse of two runs' verifications, with the texts of both."""
    worse = min(first, second, key=lambda mark: STATES.index(mark.state))
    text = first.words if first.words == second.words else f"A: {first.words}; B: {second.words}"
    return Verification(worse.state, text, first.details)


MAX_NAMED_FAILURES = 2  # checks
Verifier = Callable[[Trace, Selection], Verification]
Inspect = Callable[[Trace, Selection, ClickedPoint], Derivation | tuple[Derivation, ...] | None]


def format_failures(checks: Mapping[str, RecomputationCheck], dtype: str) -> str:
    """Name the checks that failed and by how much, the worst first."""
    failed = [name for name, check in checks.items() if not check.is_within_tolerance]
    failed.sort(key=lambda name: np.nan_to_num(checks[name].times, nan=np.inf), reverse=True)
    texts = [format_deviation(name, checks[name], dtype) for name in failed[:MAX_NAMED_FAILURES]]
    if rest := len(failed[MAX_NAMED_FAILURES:]):
        texts.append(_("{count} more", count=rest))
    return _("Wrong numbers: {which}", which="; ".join(texts))


def format_deviation(name: str, check: RecomputationCheck, dtype: str) -> str:
    """Format how far a value is off, in multiples of rounding error."""
    if not np.isfinite(check.error):
        return _("{name} holds or gives something that is not a number (NaN or infinite)", name=name)
    return _(
        "{name} is off by {error}, {times} times what {dtype} rounding can explain",
        name=name,
        error=format_number(check.error),
        times=format_number(check.times),
        dtype=dtype,
    )


@dataclass(frozen=True)
class CapturedValuesVerifier:
    """Verifier of captured values: their largest error when recomputed, and the inputs used.

    Attributes:
        templates: names of the values, with fields of the selection.
    """

    templates: tuple[str, ...]

    def __call__(self, trace: Trace, selection: Selection) -> Verification:
        if not trace.has_weights:
            return unverifiable()
        names = expand_tap_templates(self.templates, trace, selection)
        checks = check_values(trace, names)
        inputs = join_names(tap_name_without_layer(read) for name in checks for read in input_names(trace, name))
        text = _("recomputed, largest error {error}", error=format_number(largest_error(checks.values())))
        details = _("{values} from {inputs}", values=join_names(names), inputs=inputs or _("the positions alone"))
        return Verification.from_checks(checks, text, details, trace)


def verify_captured(*templates: str) -> CapturedValuesVerifier:
    """Return a verifier of captured values."""
    return CapturedValuesVerifier(templates)


@dataclass(frozen=True)
class AnalysisVerifier:
    """Verifier of an analysis of captured values and weights.

    Attributes:
        templates: names of the values, with fields of the selection.
        against: a check of the analysis itself against captured values: its name, translated on use, and the
            function.
    """

    templates: tuple[str, ...]
    against: tuple[str, Callable[[Trace, Selection], RecomputationCheck]] | None

    def __call__(self, trace: Trace, selection: Selection) -> Verification:
        if not trace.has_weights:
            return unverifiable()
        names = expand_tap_templates(self.templates, trace, selection)
        checks = check_values(trace, names)
        texts = [input_error_text(checks)] if checks else []
        if self.against:
            check_name, compare = translate(self.against[0]), self.against[1]
            checks[check_name] = check_result = compare(trace, selection)
            texts.insert(
                0, _("{compared}, off by {error}", compared=check_name, error=format_number(check_result.error))
            )
        source = _("worked out from {values}", values=join_names(names))
        return Verification.from_checks(checks, "; ".join(texts) or source, source, trace)


def verify_derived(
    *templates: str, against: tuple[str, Callable[[Trace, Selection], RecomputationCheck]] | None = None
) -> AnalysisVerifier:
    """Return a verifier of an analysis of captured values and weights, see `AnalysisVerifier`."""
    return AnalysisVerifier(templates, against)


def verify_comparison(
    *templates: str, against: tuple[str, Callable[[Comparison, Selection], RecomputationCheck]] | None = None
) -> Callable[[Comparison, Selection], Verification]:
    """Return a verifier of the effects of interventions: the largest error of either run's values when recomputed.

    The angles are among them, because they tell changes from rounding.

    Args:
        against: as in `verify_derived`.
    """

    def verify(comparison: Comparison, selection: Selection) -> Verification:
        trace = comparison.trace
        names = expand_tap_templates([*templates, "rope.angles", "local_rope.angles"], trace, selection)
        runs = ("{name}, A", "{name}, B")
        details = _("{values} of A and B", values=join_names(names))
        if comparison.is_unchanged:
            runs = N_("{name} of the changed run"), N_("{name} of the unchanged run")
            details = _("{values}, changed and unchanged", values=join_names(names))
        both_runs = zip(runs, comparison.runs, strict=True)
        checks = {
            translate(run_template, name=name): c
            for run_template, run in both_runs
            for name, c in check_values(run, names).items()
        }
        texts = [input_error_text(checks)]
        if against:
            check_name, compare = translate(against[0]), against[1]
            checks[check_name] = check_result = compare(comparison, selection)
            texts.insert(
                0, _("{compared}, off by {error}", compared=check_name, error=format_number(check_result.error))
            )
        return Verification.from_checks(checks, "; ".join(texts), details, *comparison.runs)

    return verify


def unverifiable() -> Verification:
    """Return the verification of values of a module whose formulas and weights are unknown."""
    return Verification("unchecked", _("values of a module with a structure unknown here: they are not recomputed"))


def input_error_text(checks: Mapping[str, RecomputationCheck]) -> str:
    """Return the text of the largest error of recomputed inputs."""
    return _("inputs recomputed, largest error {error}", error=format_number(largest_error(checks.values())))


def make_unverified(text: str, details: str = "") -> Verifier:
    """Return a verifier for a figure of numbers that were not computed; `text` is translated on use."""
    return lambda trace, selection: Verification("unchecked", translate(text), details)


@dataclass(frozen=True)
class CapturedCellInspector:
    """Function that derives the captured value of a clicked cell.

    Attributes:
        template: name of the value, with fields of the selection.
        axes: the index of each axis: a coordinate of the point, or else a field of the selection.
    """

    template: str
    axes: tuple[str, ...]

    def __call__(self, trace: Trace, selection: Selection, point: ClickedPoint) -> Derivation:
        fields = selection.as_dict()
        for name in {"layer", "head", *self.axes} & {"x", "y", "layer", "head"}:
            if (coordinate := point.coordinate_or_none(name)) is not None:
                fields[name] = coordinate
        return derive(trace, self.template.format(**fields), tuple(fields[axis] for axis in self.axes))


def inspect_captured(template: str, *axes: str) -> CapturedCellInspector:
    """Return a function that derives the captured value of a clicked cell."""
    return CapturedCellInspector(template, axes)


def describe_recomputation(
    trace: Trace, names: Sequence[str], index: tuple[int, ...], source: str, error: float, **fields: str
) -> str:
    """Return how far a formula's result is from the captured number, with the run's changes if they act on it.

    Args:
        names: taps of the formula's values, the result last.
        index: its element; of attention, the whole row counts, as its softmax reads it.
        source: text for a run without them: what it was recomputed from, and the error.
        error: difference of the formula's result from the captured number.
    """
    changes = [
        edit.describe(trace.config, token_formatter(trace))
        for name in names
        for edit in active_interventions(trace, name)
        if np.any(edit.element_mask(trace.shape(name))[index[:-1] if ".attn." in name else index])
    ]
    if not changes:
        return translate(source, error=format_number(error), **fields)
    derivation = derive(trace, names[-1], index)
    return _(
        "with the run’s changes ({changes}): {value}, off by {error}",
        changes="; ".join(dict.fromkeys(changes)),
        value=format_six_digits(derivation.value),
        error=format_number(derivation.difference),
    )


def expand_tap_templates(templates: Sequence[str], trace: Trace, selection: Selection) -> list[str]:
    """Return the names of the values and weights that exist, filled in from the selection."""
    names = [template.format(**selection.as_dict()) for template in templates]
    return [name for name in names if trace.has_tap(name) or name in trace.weights]


def check_values(trace: Trace, names: Sequence[str]) -> dict[str, RecomputationCheck]:
    """Compare each captured value among these names with its recomputation; weights are not checked."""
    layers = range(trace.config.num_layers)
    expanded = [name.replace("*", str(layer)) for name in names for layer in (layers if "*" in name else layers[:1])]
    return {name: check_captured_value(trace, name) for name in expanded if name in trace}


def tap_name_without_layer(name: str) -> str:
    """Return a tap's name without its layer."""
    return re.sub(r"^blocks\.\d+\.", "", name)


def verify_lens(trace: Trace, selection: Selection) -> Verification:
    """Verify the values that the lens reads, and the lens itself at the last depth against the captured logits.

    All depths are read in the same way; only the last can be compared.
    """
    names = ("blocks.0.resid_pre", *(f"blocks.*.{name}" for name in block_lens_points(trace.config)))
    comparison = N_("at the last depth against the captured logits"), lambda trace, s: check_last_depth(trace, s.query)
    return verify_derived(*names, "logits", against=comparison)(trace, selection)
