"""One picture, or one step of a lesson, on the whole screen."""

from explorer.language import _
from explorer.web.widgets.widget import Widget, with_words

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


class Stage(Widget):
    """What is presented fills the screen: a lesson's steps page by page, saved places, or the pictures of the open tab.
    Notes and what comes next are in a second window."""

    def __init__(self, **kwargs):
        html = with_words(
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
