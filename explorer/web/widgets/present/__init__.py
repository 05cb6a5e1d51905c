"""Button for presentation mode and its saved views."""

from explorer.translations import _
from explorer.web.widgets.widget import Widget, fill_template

HTML = """<button type="button" class="open" aria-expanded="false" title="{present_is}">{present}</button>
<div class="list" role="dialog" aria-label="{present}" hidden>
<div class="line"><button type="button" class="begin" aria-keyshortcuts="P">{begin}</button>
<span class="what"></span></div>
<h2>{places}</h2>
<p class="told" role="status"></p>
<div class="brought" hidden></div>
<ol class="places"></ol>
<div class="line"><button type="button" class="save">{save}</button>
<button type="button" class="link">{link}</button><button type="button" class="file">{file}</button></div>
</div>"""


class PresentationMenu(Widget):
    """A button that opens the list of saved views, which can be sorted, named, removed and shared there."""

    def __init__(self, **kwargs):
        html = fill_template(
            HTML,
            present=_("Present"),
            present_is=_("one picture, or one step of a lesson, on the whole screen"),
            begin=_("Present (P)"),
            places=_("Saved places"),
            save=_("Save this place"),
            link=_("Copy as a link"),
            file=_("Save as a file"),
        )
        super().__init__(html=html, **kwargs)
