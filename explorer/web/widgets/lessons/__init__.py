"""The way to the lessons."""

from explorer.language import _
from explorer.web.widgets.widget import Widget, with_words

HTML = """<button type="button" class="open" aria-expanded="false" title="{lessons_are}">{lessons}</button>
<div class="list" role="dialog" aria-label="{lessons}" hidden></div>"""


class Lessons(Widget):
    """A button that opens the list of lessons, each with where the visitor left it."""

    def __init__(self, **kwargs):
        words = {"lessons": _("Lessons"), "lessons_are": _("step by step, with questions that you answer first")}
        super().__init__(html=with_words(HTML, **words), **kwargs)
