"""The map of a model."""

from typing import Any

from explorer.views.overview.diagram import Diagram
from explorer.web.widgets.widget import EVIDENCE, Widget


class ModelMap(Widget):
    """Draws a `Diagram` as SVG; every part of it is a button for the pointer and for the keyboard.

    Args:
        height, min_width: of the picture in pixels where it has no more room than that; in more it grows, in less it
            scrolls sideways.
    """

    def __init__(self, *, height: int, min_width: int, **kwargs):
        style = f"min-width:{min_width}px;aspect-ratio:{min_width}/{height}"
        html = f'<div class="map"><div class="sheet" style="{style}"></div></div>'
        super().__init__(html=f'{html}<div class="told" popover="manual"></div>{EVIDENCE}', **kwargs)

    @staticmethod
    def pack(diagram: Diagram) -> dict[str, Any]:
        """The diagram as JSON has it; lines, words and the legend as lists in the order of their fields."""
        return {
            "size": [diagram.width, diagram.height],
            "alt": diagram.alt,
            "parts": [
                vars(part) | {"box": placed(part.box), "value": None if part.value is None else float(part.value)}
                for part in diagram.parts
            ],
            "lines": [[line.kind, placed(line.corners), round(line.width, 2), line.arrow] for line in diagram.lines],
            "words": [[*placed((word.x, word.y)), word.text, word.kind, word.side] for word in diagram.words],
            "legend": [[kind, placed(box)] for kind, box in diagram.legend],
            "scale": placed(diagram.scale),
            "largest": diagram.largest,
        }


def placed(numbers: tuple[float, ...]) -> list[float]:
    """Places in the plan, to a hundredth of its pixels."""
    return [round(number, 2) for number in numbers]
