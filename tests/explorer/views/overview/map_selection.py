"""Selection of the map's tests, its target token, and geometry of its elements."""

from explorer.analysis.next_token import ranking_without_interventions
from explorer.state.selection import Selection
from explorer.tracing.trace import Trace
from explorer.views.overview.map_parts import MapPart

SELECTION = Selection(layer=1, head=2, query=9, target=2)


def target_token_id(trace: Trace) -> int:
    return int(ranking_without_interventions(trace, SELECTION.query)[SELECTION.target - 1])


def element_centre(part: MapPart) -> tuple[float, float]:
    """Return the centre (x, y) of an element on the wide sheet."""
    left, upper, right, lower = part.boxes[0]
    return (left + right) / 2, (upper + lower) / 2
