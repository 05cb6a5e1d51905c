"""Maps of a model: of its architecture, and of the whole computation, whose parts open in place."""

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from explorer.translations import _
from explorer.views.overview.map_parts import MapPart, ModelMap
from explorer.views.overview.whole_model import WholeModelFigure
from explorer.web.widgets import EVIDENCE, HtmlWidget, fill_template
from explorer.web.widgets.teaching import WalkthroughButton


class ModelMapWidget(HtmlWidget):
    """Draws a `ModelMap` as SVG; every part of it is a button for the pointer and for the keyboard.

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
    def pack(diagram: ModelMap) -> dict[str, Any]:
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


WHOLE_MODEL_HTML = """<div class="whole">
<div class="line"><nav class="path" aria-label="{path}"></nav><div class="acts">%s</div>
<output class="readout" aria-live="off"></output></div>
<div class="drawing"></div>
<p class="sum"></p>
</div>"""


class WholeModelWidget(HtmlWidget):
    """Draws a `WholeModelFigure` as SVG; each part is a button that opens it in place.

    What is open is the selection's `open`. The parts of the logit stand below the drawing as a sum.
    """

    kind = "whole_model"
    script = "whole_model"

    def __init__(self, **kwargs):
        walk = WalkthroughButton("attention", elem_id="overview-walk").markup
        html = fill_template(WHOLE_MODEL_HTML, path=_("what is open")) % walk
        super().__init__(html=html + EVIDENCE, **kwargs)

    @staticmethod
    def pack(whole_model: WholeModelFigure) -> dict[str, Any]:
        """Return the figure as JSON; curves and rows are lists in the order of their fields."""
        content = asdict(whole_model)
        for name in ("rows", "curves", "terms"):
            content[name] = [list(item.values()) for item in content[name]]
        return content
