"""What of a run the map is tested with."""

from explorer.state.selection import Selection
from explorer.views.overview.diagram import Part

SELECTION = Selection(layer=1, head=2, query=9, target=2)


def centre(part: Part) -> tuple[float, float]:
    """On a wide page."""
    left, upper, right, lower = part.boxes[0]
    return (left + right) / 2, (upper + lower) / 2
