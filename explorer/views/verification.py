"""Verification of a panel's numbers: a badge below its figure, and the derivation of a clicked number."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from explorer.analysis.logit_lens import check_last_depth
from explorer.architecture.residual_stream import lens_tap_patterns
from explorer.explain.captured import RecomputationCheck, check_captured_value, derive, input_names
from explorer.explain.captured.formulas import active_interventions
from explorer.explain.derivation import ClickedPoint, Derivation, largest_error, tolerance
from explorer.explain.notation import format_number, format_six_digits, join_names, token_formatter
from explorer.state.selection import Selection
from explorer.tracing.comparison import Comparison
from explorer.tracing.trace import Trace
from explorer.translations import N_, _, translate
from model.config import ModelConfig


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


TapTemplate = str | Callable[[ModelConfig], Iterable[str]]
Check = Callable[[Any, Selection], RecomputationCheck]  # of a run or a comparison


@dataclass(frozen=True)
class TapVerifier:
    """Verifier of the captured values that a figure shows, or from which its numbers are derived.

    Attributes:
        kind: "captured" for the values themselves, "derived" for an analysis of them, "compared" for one of two runs.
        templates: names of the values, with fields of the selection and * for all layers; a function gives those of a
            model.
        against: a check of the analysis itself against captured values: its name, translated on use, and the
            function.
    """

    kind: Literal["captured", "derived", "compared"]
    templates: tuple[TapTemplate, ...]
    against: tuple[str, Check] | None = None

    def expand_templates(self, config: ModelConfig) -> list[str]:
        """Return the templates for a model."""
        return [name for item in self.templates for name in ([item] if isinstance(item, str) else item(config))]

    def __call__(self, subject: Trace | Comparison, selection: Selection) -> Verification:
        runs = subject.runs if isinstance(subject, Comparison) else (subject,)
        if not all(run.has_weights for run in runs):
            return unverifiable()
        names = expand_tap_templates(self.expand_templates(runs[0].config), runs[0], selection)
        if self.kind == "compared":
            details, checks = check_both_runs(subject, names)
        else:
            details, checks = _("worked out from {values}", values=join_names(names)), check_values(subject, names)
        texts = [input_error_text(checks)] if checks else []
        if self.kind == "captured":
            inputs = join_names(tap_name_without_layer(read) for name in checks for read in input_names(subject, name))
            details = _("{values} from {inputs}", values=join_names(names), inputs=inputs or _("the positions alone"))
            texts = [_("recomputed, largest error {error}", error=format_number(largest_error(checks.values())))]
        if self.against:
            check_name, compare = translate(self.against[0]), self.against[1]
            checks[check_name] = check = compare(subject, selection)
            texts.insert(0, _("{compared}, off by {error}", compared=check_name, error=format_number(check.error)))
        return Verification.from_checks(checks, "; ".join(texts) or details, details, *runs)


def verify_captured(*templates: TapTemplate) -> TapVerifier:
    """Return a verifier of captured values: their largest error when recomputed, and the inputs used."""
    return TapVerifier("captured", templates)


def verify_derived(*templates: TapTemplate, against: tuple[str, Check] | None = None) -> TapVerifier:
    """Return a verifier of an analysis of captured values and weights."""
    return TapVerifier("derived", templates, against)


def verify_comparison(*templates: TapTemplate, against: tuple[str, Check] | None = None) -> TapVerifier:
    """Return a verifier of the differences of two runs.

    The angles are among the values, because they tell changes from rounding.
    """
    return TapVerifier("compared", (*templates, "rope.angles", "local_rope.angles"), against)


def check_both_runs(comparison: Comparison, names: Sequence[str]) -> tuple[str, dict[str, RecomputationCheck]]:
    """Return which values of both runs are recomputed, and their checks."""
    run_names, details = ("{name}, A", "{name}, B"), _("{values} of A and B", values=join_names(names))
    if comparison.is_unchanged:
        run_names = N_("{name} of the changed run"), N_("{name} of the unchanged run")
        details = _("{values}, changed and unchanged", values=join_names(names))
    return details, {
        translate(run_name, name=name): check
        for run_name, run in zip(run_names, comparison.runs, strict=True)
        for name, check in check_values(run, names).items()
    }


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


# All depths of the lens are read in the same way; only the last can be compared.
VERIFY_LENS = verify_derived(
    lens_tap_patterns,
    "logits",
    against=(
        N_("at the last depth against the captured logits"),
        lambda trace, selection: check_last_depth(trace, selection.query),
    ),
)
