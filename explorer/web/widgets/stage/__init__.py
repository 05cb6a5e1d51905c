"""Full-screen presentation of a figure or of a lesson's step."""

from explorer.translations import _
from explorer.web.widgets.widget import Widget, fill_template

HTML = """<section class="stage" aria-label="{presenting}" hidden>
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

    def __init__(self, **kwargs):
        html = fill_template(
            HTML,
            presenting=_("presenting"),
            back=_("Back"),
            next=_("Next"),
            notes=_("Notes in a second window (N)"),
            black=_("Black (B)"),
            leave=_("Leave (Esc)"),
            is_black=_("The screen is black: press B, or click, to have it back."),
        )
        super().__init__(html=html, **kwargs)
