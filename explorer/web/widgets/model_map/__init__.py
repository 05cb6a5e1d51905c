"""The map of a model."""

from collections.abc import Iterable
from typing import Any

from explorer.views.overview.diagram import Diagram, Part
from explorer.web.widgets.widget import EVIDENCE, Widget


class ModelMap(Widget):
    """Draws a `Diagram` as SVG; every part of it is a button for the pointer and for the keyboard.

    Args:
        height, min_width: of the wide arrangement in pixels where it has no more room than that; in more it grows, in
            less it scrolls sideways. That of a narrow page takes the room there is.
    """

    def __init__(self, *, height: int, min_width: int, **kwargs):
        style = f"--min-width:{min_width}px;--ratio:{min_width}/{height}"
        html = f'<div class="map"><div class="sheet" style="{style}"></div></div>'
        super().__init__(html=f'{html}<div class="told" popover="manual"></div>{EVIDENCE}', **kwargs)

    @staticmethod
    def pack(diagram: Diagram) -> dict[str, Any]:
        """The diagram as JSON has it; parts, lines, words and the legend as lists in the order of their fields."""
        return {
            "alt": diagram.alt,
            "largest": diagram.largest,
            "parts": [
                [part.kind, [*map(placed, part.boxes)], part.told, part.selects, value_of(part), part.written]
                for part in diagram.parts
            ],
            "sheets": [
                {
                    "size": placed(sheet.size),
                    "lines": [
                        [line.kind, placed(line.corners), round(line.width, 2), line.arrow] for line in sheet.lines
                    ],
                    "words": [[*placed((word.x, word.y)), word.text, word.kind, word.side] for word in sheet.words],
                    "written": list(sheet.written),
                    "legend": [[kind, placed(box)] for kind, box in sheet.legend],
                    "scale": placed(sheet.scale),
                }
                for sheet in diagram.sheets
            ],
        }


def value_of(part: Part) -> float | None:
    return None if part.value is None else float(part.value)


def placed(numbers: Iterable[float]) -> list[float]:
    """Places in the plan, to a hundredth of its pixels; whole ones as they are written shortest."""
    rounded = (round(number, 2) for number in numbers)
    return [int(number) if number == int(number) else number for number in rounded]
