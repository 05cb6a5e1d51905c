"""The map of the model for two runs: on one scale, and what each part adds in A less what it adds in B."""

from dataclasses import replace

from explorer.language import _
from explorer.tracing.comparison import Comparison
from explorer.views.overview.diagram import Diagram, Part, Sheet
from explorer.views.overview.words import signed
from explorer.views.two_runs.difference import Incomparable
from explorer.views.two_runs.pair import Pair

OF_ONE_RUN = ("number", "sum", "heading")  # words that say numbers, or what these are
NEXT = "next_token"


def on_one_map_scale(diagram: Diagram, other: Diagram) -> Diagram:
    """A map with the colours that hold for both."""
    return _coloured(diagram, max(diagram.largest, other.largest))


def map_difference(first: Diagram, second: Diagram, comparison: Comparison, title: str) -> Diagram:
    """A − B: every part has the difference of what it adds to the explained logit, and tells both runs' numbers. Lines
    are A's.

    Raises:
        Incomparable: the models are built differently.
    """
    built, other_built = ([part for part in diagram.parts if part.kind != NEXT] for diagram in (first, second))
    if [(part.kind, part.selects) for part in built] != [(part.kind, part.selects) for part in other_built]:
        raise Incomparable(_("A and B are models of different parts: look at their maps in turn."))
    parts = [_less(one, two) for one, two in zip(built, other_built, strict=True)]
    parts += [replace(part, value=None) for part in first.parts if part.kind == NEXT]
    largest = max((abs(part.value) for part in parts if part.value is not None), default=0.0)
    alt = _("A − B of: {title}. The largest difference is {most}.", title=title, most=signed(largest))
    sheets = (
        replace(sheet, words=[word for word in sheet.words if word.kind not in OF_ONE_RUN]) for sheet in first.sheets
    )
    return _coloured(replace(first, parts=parts, sheets=tuple(sheets), alt=alt), largest or 1.0)


def _less(one: Part, two: Part) -> Part:
    told = _("A: {a}\nB: {b}", a=one.told, b=two.told)
    if one.value is None or two.value is None:
        return replace(one, told=told)
    less = one.value - two.value
    return replace(one, told=_("A − B: {less}\n{both}", less=signed(less), both=told), value=less)


def _coloured(diagram: Diagram, largest: float) -> Diagram:
    """With colours that end at `largest`, which the words at both ends of the scale say."""

    def sheet(old: Sheet) -> Sheet:
        ends = iter((-largest, 0.0, largest))
        words = [replace(word, text=signed(next(ends))) if word.kind == "tick" else word for word in old.words]
        return replace(old, words=words)

    return replace(diagram, largest=largest, sheets=tuple(map(sheet, diagram.sheets)))


MAPS = Pair(on_one_map_scale, map_difference)
