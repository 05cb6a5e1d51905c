"""Switch between the simple and the full page."""

from explorer.translations import _
from explorer.web.widgets.widget import Widget, fill_template

HTML = """<div class="mode" role="group" aria-label="{page}">
<button type="button" data-mode="simple" title="{simple_is}">{simple}</button>
<button type="button" data-mode="full" title="{full_is}">{full}</button>
</div>"""


class PageModeSwitch(Widget):
    """Two buttons: the simple page with three steps, and the full page."""

    def __init__(self, **kwargs):
        html = fill_template(
            HTML,
            page=_("how much is shown"),
            simple=_("Simple"),
            simple_is=_("one story in three steps"),
            full=_("Full"),
            full_is=_("every part, number and setting"),
        )
        super().__init__(html=html, **kwargs)
