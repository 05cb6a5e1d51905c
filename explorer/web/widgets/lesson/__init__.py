"""Lessons: the panel of a step, and the button that opens their list."""

from explorer.translations import _
from explorer.web.widgets.html_widget import Widget, fill_template

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

    kind = "lesson"
    lazy = ""

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


LESSON_LIST_HTML = """<button type="button" class="open" aria-expanded="false" title="{lessons_are}">{lessons}</button>
<div class="list" role="dialog" aria-label="{lessons}" hidden></div>"""


class LessonListButton(Widget):
    """A button that opens the list of lessons, each with the step where the user left it."""

    kind = "lessons"
    lazy = ""

    def __init__(self, **kwargs):
        words = {"lessons": _("Lessons"), "lessons_are": _("step by step, with questions that you answer first")}
        super().__init__(html=fill_template(LESSON_LIST_HTML, **words), **kwargs)
