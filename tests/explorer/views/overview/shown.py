"""Selection with which the map is tested, and geometry of its elements."""

from explorer.state.selection import Selection
from explorer.views.overview.map_parts import MapPart

SELECTION = Selection(layer=1, head=2, query=9, target=2)


def centre(part: MapPart) -> tuple[float, float]:
    """Return the centre (x, y) of an element on the wide sheet."""
    left, upper, right, lower = part.boxes[0]
    return (left + right) / 2, (upper + lower) / 2
