"""Panel of a lesson's step."""

from explorer.translations import _
from explorer.web.widgets.widget import Widget, fill_template

HTML = """<aside class="lesson" aria-label="{lesson}" hidden>
<header><button type="button" class="fold" aria-expanded="true" aria-label="{fold}"></button>
<span class="of"></span><button type="button" class="print" title="{print_is}">{print}</button>
<button type="button" class="leave">{leave}</button></header>
<div class="told" tabindex="0">
<h2 tabindex="-1"></h2>
<p class="against"></p>
<p class="note"></p>
<div class="before"></div>
<div class="question"></div>
<div class="verdict" role="status"></div>
<div class="after"></div>
</div>
<nav><button type="button" class="back">{back}</button><button type="button" class="next">{next}</button></nav>
</aside>"""


class LessonPanel(Widget):
    """A step of a lesson: text, a question, and after a reply the feedback.

    On a wide screen it is a column at the left, on a narrow one a sheet that folds.
    """

    def __init__(self, **kwargs):
        html = fill_template(
            HTML,
            lesson=_("lesson"),
            fold=_("fold the lesson"),
            print=_("Print"),
            print_is=_("the whole lesson as a sheet: figures, blanks, and the answers on a page of their own"),
            leave=_("Leave"),
            back=_("Back"),
            next=_("Next"),
        )
        super().__init__(html=html, **kwargs)
