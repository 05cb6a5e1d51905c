"""The map of the model: its parts at their places, with this run's numbers."""

from collections.abc import Iterable

import numpy as np

from explorer.analysis.overview import Overview
from explorer.language import _
from explorer.state.selection import Selection
from explorer.tracing.trace import Trace
from explorer.views.overview.diagram import Diagram, Sheet, Word
from explorer.views.overview.flow import flows, rotations, wires
from explorer.views.overview.parting import with_parting
from explorer.views.overview.parts import Parts
from explorer.views.overview.plan import Box, Plan
from explorer.views.overview.words import DISCS, beside_blocks, beside_rows, explanations, of_next_tokens

LEGEND_ROW = 19


def draw(trace: Trace, selection: Selection, found: Overview, score: str, alt: str) -> Diagram:
    """The map; `score` names the explained logit, `alt` says in a sentence what is seen."""
    parts = Parts(trace, selection, found, score)
    drawn, (wide, tall) = tuple(parts), parts.plans
    largest = float(max(np.abs(found.parts.heads).max(), np.abs(found.parts.feed_forward).max())) or 1.0
    adds = _("adds to the lead") if selection.rival else _("adds to the logit")
    kinds = {part.kind for part in drawn}

    def sheet(plan: Plan, words: Iterable[Word], longest: int) -> Sheet:
        discs = [kind for kind in DISCS if kind in kinds]
        legend = tuple((kind, explained(plan, row)) for row, kind in enumerate(discs))
        said = (*of_next_tokens(plan, parts.listed, longest), *words, *explanations(plan, legend, largest, adds))
        lines = (*flows(plan, found), *wires(plan), *rotations(plan))
        return Sheet(plan.size, lines, said, plan.written, legend, plan.scale)

    sheets = sheet(wide, beside_rows(wide, found, adds), longest=7), sheet(tall, beside_blocks(tall, found), longest=24)
    return with_parting(Diagram(drawn, sheets, largest, alt), trace.diagnosis)


def explained(plan: Plan, row: int) -> Box:
    """The edges of the disc in a row of the legend."""
    x, y = plan.legend
    return x - 7, y + row * LEGEND_ROW - 7, x + 7, y + row * LEGEND_ROW + 7
