"""The map of the model for two runs: on one colour scale, and as the difference A − B."""

from dataclasses import replace

from explorer.tracing.comparison import Comparison
from explorer.translations import _
from explorer.views.overview.map_data import Diagram, MapArrangement, MapPart
from explorer.views.overview.map_labels import format_signed
from explorer.views.two_runs import NoDifferenceError
from explorer.views.view import TwoRunRenderer

SINGLE_RUN_LABELS = ("number", "sum", "heading")  # kinds of labels that do not hold for a difference
NEXT_TOKEN = "next_token"


def share_map_scale(diagram: Diagram, other: Diagram) -> Diagram:
    """Return the map with a colour scale for both runs."""
    return _rescale_colours(diagram, max(diagram.largest, other.largest))


def map_difference(first: Diagram, second: Diagram, comparison: Comparison, title: str) -> Diagram:
    """Return the map of A − B: differences of contributions, with both runs' numbers in the hover texts.

    Lines are A's.

    Raises:
        NoDifferenceError: the models have different components.
    """
    parts_a, parts_b = (
        [map_part for map_part in diagram.parts if map_part.kind != NEXT_TOKEN] for diagram in (first, second)
    )
    if [(map_part.kind, map_part.selects) for map_part in parts_a] != [
        (map_part.kind, map_part.selects) for map_part in parts_b
    ]:
        raise NoDifferenceError(_("A and B are models of different parts: look at their maps in turn."))
    differences = [_subtract(part_a, part_b) for part_a, part_b in zip(parts_a, parts_b, strict=True)]
    differences += [replace(map_part, value=None) for map_part in first.parts if map_part.kind == NEXT_TOKEN]
    largest = max((abs(map_part.value) for map_part in differences if map_part.value is not None), default=0.0)
    alt = _("A − B of: {title}. The largest difference is {most}.", title=title, most=format_signed(largest))
    sheets = (
        replace(sheet, labels=[word for word in sheet.labels if word.kind not in SINGLE_RUN_LABELS])
        for sheet in first.sheets
    )
    return _rescale_colours(replace(first, parts=differences, sheets=tuple(sheets), alt=alt), largest or 1.0)


def _subtract(part_a: MapPart, part_b: MapPart) -> MapPart:
    both_texts = _("A: {a}\nB: {b}", a=part_a.hover_text, b=part_b.hover_text)
    if part_a.value is None or part_b.value is None:
        return replace(part_a, hover_text=both_texts)
    difference = part_a.value - part_b.value
    return replace(
        part_a, hover_text=_("A − B: {less}\n{both}", less=format_signed(difference), both=both_texts), value=difference
    )


def _rescale_colours(diagram: Diagram, largest: float) -> Diagram:
    """Return the map with colours that end at `largest`, and the labels of the colour scale adapted."""

    def rescale_sheet(arrangement: MapArrangement) -> MapArrangement:
        ends = iter((-largest, 0.0, largest))
        labels = [
            replace(map_label, text=format_signed(next(ends))) if map_label.kind == "tick" else map_label
            for map_label in arrangement.labels
        ]
        return replace(arrangement, labels=labels)

    return replace(diagram, largest=largest, sheets=tuple(map(rescale_sheet, diagram.sheets)))


MAPS = TwoRunRenderer(share_map_scale, map_difference)
