"""The map of the model: its parts in their layout, with this run's numbers."""

from collections.abc import Iterable

import numpy as np

from explorer.analysis.direct_logit_attribution import Overview
from explorer.state.selection import Selection
from explorer.tracing.trace import Trace
from explorer.translations import _
from explorer.views.overview.diagnosis_marker import mark_first_difference
from explorer.views.overview.map_data import Diagram, MapArrangement, MapLabel
from explorer.views.overview.map_labels import (
    DISCS,
    landscape_labels,
    legend_labels,
    next_token_labels,
    portrait_labels,
)
from explorer.views.overview.map_layout import Box, MapLayout
from explorer.views.overview.map_lines import residual_lines, rope_lines, stream_read_lines
from explorer.views.overview.map_parts import MapParts

LEGEND_ROW = 19


def make_diagram(trace: Trace, selection: Selection, overview: Overview, score: str, alt: str) -> Diagram:
    """Return the map of the model in both arrangements, with this run's numbers at the query.

    Args:
        score: name of the explained logit.
        alt: alternative text, in a sentence.
    """
    all_parts = MapParts(trace, selection, overview, score)
    map_parts, (landscape, portrait) = tuple(all_parts), all_parts.layouts
    largest = (
        float(max(np.abs(overview.attribution.heads).max(), np.abs(overview.attribution.feed_forward).max())) or 1.0
    )
    contribution_label = _("adds to the lead") if selection.rival else _("adds to the logit")
    kinds = {map_part.kind for map_part in map_parts}

    def make_sheet(plan: MapLayout, labels: Iterable[MapLabel], max_chars: int) -> MapArrangement:
        discs = [kind for kind in DISCS if kind in kinds]
        legend = tuple((kind, legend_disc(plan, row)) for row, kind in enumerate(discs))
        all_labels = (
            *next_token_labels(plan, all_parts.next_tokens, max_chars),
            *labels,
            *legend_labels(plan, legend, largest, contribution_label),
        )
        lines = (*residual_lines(plan, overview), *stream_read_lines(plan), *rope_lines(plan))
        return MapArrangement(plan.size, lines, all_labels, plan.labelled_kinds, legend, plan.scale)

    sheets = (
        make_sheet(landscape, landscape_labels(landscape, overview, contribution_label), max_chars=7),
        make_sheet(portrait, portrait_labels(portrait, overview), max_chars=24),
    )
    return mark_first_difference(Diagram(map_parts, sheets, largest, alt), trace.diagnosis)


def legend_disc(plan: MapLayout, row: int) -> Box:
    """Return the edges of the disc in a row of the legend."""
    x, y = plan.legend
    return x - 7, y + row * LEGEND_ROW - 7, x + 7, y + row * LEGEND_ROW + 7
