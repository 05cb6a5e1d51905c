"""Map of a model's architecture."""

from collections.abc import Iterable
from typing import Any

from explorer.views.overview.map_parts import Diagram, MapPart
from explorer.web.widgets.html_widget import EVIDENCE, Widget


class ModelMap(Widget):
    """Draws a `Diagram` as SVG; every part of it is a button for the pointer and for the keyboard.

    Args:
        height, min_width: of the wide arrangement in pixels, at its smallest: it grows with the page, and scrolls
            sideways in a narrower one. The narrow page's arrangement takes the width there is.
    """

    kind = "model_map"

    def __init__(self, *, height: int, min_width: int, **kwargs):
        style = f"--min-width:{min_width}px;--ratio:{min_width}/{height}"
        html = f'<div class="map"><div class="sheet" style="{style}"></div></div>'
        super().__init__(html=f'{html}<div class="told" popover="manual"></div>{EVIDENCE}', **kwargs)

    @staticmethod
    def pack(diagram: Diagram) -> dict[str, Any]:
        """Return the diagram as JSON; parts, lines, labels and the legend are lists in the order of their fields."""
        return {
            "alt": diagram.alt,
            "largest": diagram.largest,
            "parts": [
                [
                    part.kind,
                    [*map(round_coordinates, part.boxes)],
                    part.hover_text,
                    part.selects,
                    part_value(part),
                    part.label,
                ]
                for part in diagram.parts
            ],
            "sheets": [
                {
                    "size": round_coordinates(sheet.size),
                    "lines": [
                        [line.kind, round_coordinates(line.corners), round(line.width, 2), line.arrow]
                        for line in sheet.lines
                    ],
                    "words": [
                        [*round_coordinates((word.x, word.y)), word.text, word.kind, word.side] for word in sheet.labels
                    ],
                    "written": list(sheet.labelled_kinds),
                    "legend": [[kind, round_coordinates(box)] for kind, box in sheet.legend],
                    "scale": round_coordinates(sheet.scale),
                }
                for sheet in diagram.sheets
            ],
        }


def part_value(part: MapPart) -> float | None:
    """Return a part's value as JSON has it."""
    return None if part.value is None else float(part.value)


def round_coordinates(numbers: Iterable[float]) -> list[float]:
    """Round coordinates to a hundredth of a pixel; whole numbers become integers."""
    rounded = (round(number, 2) for number in numbers)
    return [int(number) if number == int(number) else number for number in rounded]
