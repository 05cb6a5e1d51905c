"""The whole model in one figure, whose parts open in place."""

from dataclasses import asdict
from typing import Any

from explorer.translations import _
from explorer.views.overview.whole_model import WholeModel
from explorer.web.widgets.html_widget import EVIDENCE, Widget, fill_template

HTML = """<div class="whole">
<div class="line"><nav class="path" aria-label="{path}"></nav><output class="readout" aria-live="off"></output></div>
<div class="drawing"></div>
<p class="sum"></p>
</div>"""


class WholeModelFigure(Widget):
    """Draws a `WholeModel` as SVG; each part is a button that opens it in place.

    What is open is the selection's `open`. The parts of the logit stand below the drawing as a sum.
    """

    kind = "whole_model"

    def __init__(self, **kwargs):
        super().__init__(html=fill_template(HTML, path=_("what is open")) + EVIDENCE, **kwargs)

    @staticmethod
    def pack(whole_model: WholeModel) -> dict[str, Any]:
        """Return the figure as JSON; curves and rows are lists in the order of their fields."""
        content = asdict(whole_model)
        for name in ("rows", "curves", "terms"):
            content[name] = [list(item.values()) for item in content[name]]
        return content
