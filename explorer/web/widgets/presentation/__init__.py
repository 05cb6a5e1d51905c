"""Presentation mode: the button with its saved views, and the full-screen presentation."""

from explorer.translations import _
from explorer.web.widgets.html_widget import Widget, fill_template

MENU_HTML = """<button type="button" class="open" aria-expanded="false" title="{present_is}">{present}</button>
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

    kind = "present_menu"
    lazy = ""

    def __init__(self, **kwargs):
        html = fill_template(
            MENU_HTML,
            present=_("Present"),
            present_is=_("one figure, or one step of a lesson, on the whole screen"),
            begin=_("Present (P)"),
            places=_("Saved places"),
            save=_("Save this place"),
            link=_("Copy as a link"),
            file=_("Save as a file"),
        )
        super().__init__(html=html, **kwargs)


STAGE_HTML = """<section class="stage" aria-label="{presenting}" hidden>
<header><h2 tabindex="-1"></h2><p class="text"></p></header>
<p class="problem" role="alert"></p>
<nav>
<button type="button" class="back" aria-label="{back}">←</button><span class="at"></span>
<button type="button" class="next" aria-label="{next}">→</button>
<button type="button" class="notes" aria-keyshortcuts="N">{notes}</button>
<button type="button" class="black" aria-keyshortcuts="B">{black}</button>
<button type="button" class="leave" aria-keyshortcuts="Escape">{leave}</button>
</nav>
<button type="button" class="blackout" aria-label="{is_black}" hidden></button>
<i class="pointer" hidden></i>
</section>"""


class Presentation(Widget):
    """Full-screen presentation of a lesson's steps, saved views, or the open tab's figures.

    Notes and a preview of the next item are in a second window.
    """

    kind = "stage"
    lazy = "p"

    def __init__(self, **kwargs):
        html = fill_template(
            STAGE_HTML,
            presenting=_("presenting"),
            back=_("Back"),
            next=_("Next"),
            notes=_("Notes in a second window (N)"),
            black=_("Black (B)"),
            leave=_("Leave (Esc)"),
            is_black=_("The screen is black: press B, or click, to have it back."),
        )
        super().__init__(html=html, **kwargs)
