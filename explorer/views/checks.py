"""What vouches for a panel's numbers: a mark below its picture, and how a clicked number comes about.

Names of values are templates: "blocks.{layer}.attn.pattern" is filled from the selection, * stands for all layers, and
those that a kind of model does not have are left out.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Literal

import numpy as np

from explorer.analysis.rounding import largest_error, tolerance
from explorer.explain.captured import Check, check, derivation_of, inputs_of
from explorer.explain.derivation import Derivation
from explorer.explain.notation import listed, number
from explorer.explain.point import Point
from explorer.language import N_, _, look_up
from explorer.state.selection import Selection
from explorer.tracing.comparison import Comparison
from explorer.tracing.trace import Trace


@dataclass(frozen=True)
class Mark:
    """What became of a panel's numbers when they were worked out again.

    Attributes:
        state: "recomputed" if all agree but for rounding, "off" if one does not, "unchecked" if nothing was compared.
        words: what matters most.
        details: which values, and from what.
    """

    state: Literal["recomputed", "off", "unchecked"]
    words: str
    details: str = ""

    @classmethod
    def of(cls, checks: Mapping[str, Check], words: str, details: str, *runs: Trace) -> "Mark":
        """The mark that checks of runs give, by what they are of; `words` where they all passed."""
        if checks and any(run.is_on_demand for run in runs):
            again = _("values inside a block were computed anew when looked at, from what entered it")
            details = f"{details} · {again}"
        if checks and runs[0].dtype != "float32":
            told = _(
                "held to what {dtype} can tell: off by at most {percent} per cent of the terms that a number is made "
                "of",
                dtype=runs[0].dtype,
                percent=number(100 * tolerance(runs[0].dtype)),
            )
            details = f"{details} · {told}"
        if not all(check.passed for check in checks.values()):
            return cls("off", failures(checks, runs[0].dtype), details)
        return cls("recomputed" if checks else "unchecked", words, details)

    def as_dict(self) -> dict[str, str]:
        return asdict(self)


STATES = ("off", "unchecked", "recomputed")  # the worst first


def both(first: Mark, second: Mark) -> Mark:
    """What became of two runs' numbers: the worse of two marks."""
    worse = min(first, second, key=lambda mark: STATES.index(mark.state))
    words = first.words if first.words == second.words else f"A: {first.words}; B: {second.words}"
    return Mark(worse.state, words, first.details)


MOST_TOLD = 2  # of the checks that failed
Marking = Callable[[Trace, Selection], Mark]
Inspect = Callable[[Trace, Selection, Point], Derivation | tuple[Derivation, ...] | None]


def failures(checks: Mapping[str, Check], dtype: str) -> str:
    """Which checks failed and by how much, the worst first."""
    failed = [name for name, check in checks.items() if not check.passed]
    failed.sort(key=lambda name: np.nan_to_num(checks[name].times, nan=np.inf), reverse=True)
    told = [how_far(name, checks[name], dtype) for name in failed[:MOST_TOLD]]
    if rest := len(failed[MOST_TOLD:]):
        told.append(_("{count} more", count=rest))
    return _("Wrong numbers: {which}", which="; ".join(told))


def how_far(name: str, check: Check, dtype: str) -> str:
    if not np.isfinite(check.error):
        return _("{name} holds or gives something that is not a number (NaN or infinite)", name=name)
    return _(
        "{name} is off by {error}, {times} times what {dtype} rounding can explain",
        name=name,
        error=number(check.error),
        times=number(check.times),
        dtype=dtype,
    )


def recomputed(*templates: str) -> Marking:
    """For a picture of captured values: how far they are off at most when recomputed, and from what."""

    def mark(trace: Trace, selection: Selection) -> Mark:
        if not trace.has_weights:
            return of_another_build()
        shown = filled(templates, trace, selection)
        checks = checked(trace, shown)
        inputs = listed(without_layer(read) for name in checks for read in inputs_of(trace, name))
        words = _("recomputed, largest error {error}", error=number(largest_error(checks.values())))
        details = _("{values} from {inputs}", values=listed(shown), inputs=inputs or _("the positions alone"))
        return Mark.of(checks, words, details, trace)

    return mark


def worked_out(*templates: str, against: tuple[str, Callable[[Trace, Selection], Check]] | None = None) -> Marking:
    """For a picture of what an analysis makes of captured values and weights.

    Args:
        against: what of the analysis itself is compared with captured values, in words to be looked up, and how that
            comes out.
    """

    def mark(trace: Trace, selection: Selection) -> Mark:
        if not trace.has_weights:
            return of_another_build()
        shown = filled(templates, trace, selection)
        checks = checked(trace, shown)
        words = [inputs_recomputed(checks)] if checks else []
        if against:
            compared, compare = look_up(against[0]), against[1]
            checks[compared] = found = compare(trace, selection)
            words.insert(0, _("{compared}, off by {error}", compared=compared, error=number(found.error)))
        source = _("worked out from {values}", values=listed(shown))
        return Mark.of(checks, "; ".join(words) or source, source, trace)

    return mark


def compared(
    *templates: str, against: tuple[str, Callable[[Comparison, Selection], Check]] | None = None
) -> Callable[[Comparison, Selection], Mark]:
    """For a picture of what edits changed: how far the values of either run are off at most when recomputed.

    The angles are among them: they say which changes are no more than rounding.

    Args:
        against: as in `worked_out`.
    """

    def mark(comparison: Comparison, selection: Selection) -> Mark:
        trace = comparison.trace
        shown = filled([*templates, "rope.angles", "local_rope.angles"], trace, selection)
        runs = ("{name}, A", "{name}, B")
        details = _("{values} of A and B", values=listed(shown))
        if comparison.is_unchanged:
            runs = N_("{name} of the changed run"), N_("{name} of the unchanged run")
            details = _("{values}, changed and unchanged", values=listed(shown))
        both_runs = zip(runs, comparison.runs, strict=True)
        checks = {look_up(of, name=name): c for of, run in both_runs for name, c in checked(run, shown).items()}
        words = [inputs_recomputed(checks)]
        if against:
            held, hold = look_up(against[0]), against[1]
            checks[held] = found = hold(comparison, selection)
            words.insert(0, _("{compared}, off by {error}", compared=held, error=number(found.error)))
        return Mark.of(checks, "; ".join(words), details, *comparison.runs)

    return mark


def of_another_build() -> Mark:
    """Of values of a module whose formulas and weights are not known here."""
    return Mark("unchecked", _("values of a module of another build: nothing here works them out again"))


def inputs_recomputed(checks: Mapping[str, Check]) -> str:
    return _("inputs recomputed, largest error {error}", error=number(largest_error(checks.values())))


def given(words: str, details: str = "") -> Marking:
    """For a picture of what was not computed; `words` are looked up."""
    return lambda trace, selection: Mark("unchecked", look_up(words), details)


def cell(template: str, *axes: str) -> Inspect:
    """A click on a captured value.

    Args:
        axes: what each axis is counted by: a coordinate of the point, or else a field of the selection.
    """

    def inspect_cell(trace: Trace, selection: Selection, point: Point) -> Derivation:
        known = selection.as_dict()
        for name in {"layer", "head", *axes} & {"x", "y", "layer", "head"}:
            if (place := point.index(name)) is not None:
                known[name] = place
        return derivation_of(trace, template.format(**known), tuple(known[axis] for axis in axes))

    return inspect_cell


def filled(templates: Sequence[str], trace: Trace, selection: Selection) -> list[str]:
    """The names of those values and weights that there are."""
    names = [template.format(**selection.as_dict()) for template in templates]
    return [name for name in names if trace.has(name) or name in trace.weights]


def checked(trace: Trace, names: Sequence[str]) -> dict[str, Check]:
    """Each captured value among those named, held against its recomputation; weights are as they are."""
    layers = range(trace.config.num_layers)
    each = [name.replace("*", str(layer)) for name in names for layer in (layers if "*" in name else layers[:1])]
    return {name: check(trace, name) for name in each if name in trace}


def without_layer(name: str) -> str:
    return re.sub(r"^blocks\.\d+\.", "", name)
