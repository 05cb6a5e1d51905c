"""What vouches for a panel's numbers: a mark beside its title, and how a clicked number comes about.

A mark begins with what matters most, up to its first " · ".
Names of values are templates: "blocks.{layer}.attn.pattern" is filled from the selection, * stands for all layers, and
those that a kind of model does not have are left out.
"""

import re
from collections.abc import Callable, Iterable, Sequence

from explorer.analysis.recompute import inputs_of, max_error
from explorer.inspection import Inspection, Point, inspect
from explorer.selection import Selection
from explorer.style import number
from explorer.trace import Trace

Mark = Callable[[Trace, Selection], str]
Inspect = Callable[[Trace, Selection, Point], Inspection | None]


def recomputed(*templates: str) -> Mark:
    """For a picture of captured values: how far they are off at most when recomputed, and from what."""

    def mark(trace: Trace, selection: Selection) -> str:
        shown = filled(templates, trace, selection)
        names = each_layer(shown, trace)
        inputs = listed(without_layer(read) for name in names for read in inputs_of(trace, name))
        error = largest_error(trace, names)
        return f"recomputed, {error} · {listed(shown)} from {inputs or 'the positions alone'}"

    return mark


def worked_out(*templates: str, check: tuple[str, Callable[[Trace, Selection], float]] | None = None) -> Mark:
    """For a picture of what an analysis makes of captured values and weights.

    Args:
        check: what is compared, in words, and by how much it is off at most.
    """

    def mark(trace: Trace, selection: Selection) -> str:
        shown = filled(templates, trace, selection)
        captured = [name for name in each_layer(shown, trace) if name in trace]
        parts = [f"worked out from {listed(shown)}"]
        if captured:
            parts.insert(0, f"inputs recomputed, {largest_error(trace, captured)}")
        if check:
            words, off = check
            parts.insert(0, f"{words}, off by {number(off(trace, selection))}")
        return " · ".join(parts)

    return mark


def compared(*templates: str) -> Mark:
    """For a picture of what edits changed: how far the values of either run are off at most when recomputed."""

    def mark(trace: Trace, selection: Selection) -> str:
        shown = filled(templates, trace, selection)
        runs = (trace, trace.baseline)
        error = max(max_error(run, name) for run in runs for name in each_layer(shown, trace))
        return f"inputs recomputed, largest error {number(error)} · {listed(shown)}, changed and unchanged"

    return mark


def given(words: str) -> Mark:
    """For a picture of what was not computed."""
    return lambda trace, selection: words


def cell(template: str, *axes: str) -> Inspect:
    """A click on a captured value.

    Args:
        axes: what each axis is counted by: a coordinate of the point, or else a field of the selection.
    """

    def inspect_cell(trace: Trace, selection: Selection, point: Point) -> Inspection:
        known = selection.as_dict()
        for name in {"layer", "head", *axes} & {"x", "y", "layer", "head"}:
            if (place := point.index(name)) is not None:
                known[name] = place
        return inspect(trace, template.format(**known), tuple(known[axis] for axis in axes))

    return inspect_cell


def filled(templates: Sequence[str], trace: Trace, selection: Selection) -> list[str]:
    names = [template.format(**selection.as_dict()) for template in templates]
    return [name for name in names if name in trace.weights or trace.has(name)]


def each_layer(names: Sequence[str], trace: Trace) -> list[str]:
    layers = range(trace.config.num_layers)
    return [name.replace("*", str(layer)) for name in names for layer in (layers if "*" in name else layers[:1])]


def largest_error(trace: Trace, names: Sequence[str]) -> str:
    return f"largest error {number(max(max_error(trace, name) for name in names))}"


def without_layer(name: str) -> str:
    return re.sub(r"^blocks\.\d+\.", "", name)


def listed(names: Iterable[str]) -> str:
    """As in "a, b and c", each once."""
    *first, last = list(dict.fromkeys(names)) or [""]
    return f"{', '.join(first)} and {last}" if first else last
