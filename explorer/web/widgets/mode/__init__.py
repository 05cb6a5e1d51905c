"""Dial that sets how much the page explains."""

from explorer.translations import _
from explorer.web.widgets.widget import Widget, fill_template

HTML = """<div class="mode" role="group" aria-label="{depth}">
<button type="button" data-mode="story" title="{story_is}">{story}</button>
<button type="button" data-mode="numbers" title="{numbers_is}">{numbers}</button>
</div>"""


class DepthDial(Widget):
    """Two buttons: a story in three steps, and every part with its numbers."""

    def __init__(self, **kwargs):
        html = fill_template(
            HTML,
            depth=_("how much is shown"),
            story=_("Story"),
            story_is=_("one story in three steps"),
            numbers=_("Numbers"),
            numbers_is=_("every part, number and setting"),
        )
        super().__init__(html=html, **kwargs)
