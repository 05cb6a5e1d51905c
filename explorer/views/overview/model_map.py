"""The map of the model: its parts at their places, with this run's numbers."""

from collections.abc import Iterable

import numpy as np

from explorer.analysis.overview import Overview
from explorer.language import _
from explorer.state.selection import Selection
from explorer.tracing.trace import Trace
from explorer.views.overview import plan as at
from explorer.views.overview.diagram import Diagram, Part
from explorer.views.overview.flow import flows, rotations, wires
from explorer.views.overview.parts import Parts
from explorer.views.overview.plan import Box, Plan
from explorer.views.overview.words import DISCS, explanations, names, numbers


def draw(trace: Trace, selection: Selection, found: Overview, score: str, alt: str) -> Diagram:
    """The map; `score` names the explained logit, `alt` says in a sentence what is seen."""
    plan, parts = Plan(trace.config), tuple(Parts(trace, selection, found, score))
    kinds, adds = in_kinds(parts), _("adds to the lead") if selection.rival else _("adds to the logit")
    largest = float(max(np.abs(found.parts.heads).max(), np.abs(found.parts.feed_forward).max())) or 1.0
    legend = tuple((kind, explained(row)) for row, kind in enumerate(kind for kind in DISCS if kind in kinds))
    return Diagram(
        width=at.WIDTH,
        height=at.HEIGHT,
        parts=parts,
        lines=(*flows(plan, found), *wires(plan), *rotations(plan)),
        words=(*names(plan, kinds), *numbers(plan, found, adds), *explanations(legend, largest, adds)),
        legend=legend,
        scale=at.SCALE,
        largest=largest,
        alt=alt,
    )


def in_kinds(parts: Iterable[Part]) -> dict[str, list[Part]]:
    kinds = {}
    for part in parts:
        kinds.setdefault(part.kind, []).append(part)
    return kinds


def explained(row: int) -> Box:
    """The edges of the disc in a row of the legend."""
    x, y = at.LEGEND
    return x - 7, y + row * at.LEGEND_ROW - 7, x + 7, y + row * at.LEGEND_ROW + 7
