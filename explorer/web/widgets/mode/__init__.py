"""Simple or full."""

from explorer.language import _
from explorer.web.widgets.widget import Widget, with_words

HTML = """<div class="mode" role="group" aria-label="{page}">
<button type="button" data-mode="simple" title="{simple_is}">{simple}</button>
<button type="button" data-mode="full" title="{full_is}">{full}</button>
</div>"""


class Mode(Widget):
    """Two buttons: the simple page, one story in three steps, and the full one."""

    def __init__(self, **kwargs):
        html = with_words(
            HTML,
            page=_("how much is shown"),
            simple=_("Simple"),
            simple_is=_("one story in three steps"),
            full=_("Full"),
            full_is=_("every part, number and setting"),
        )
        super().__init__(html=html, **kwargs)
