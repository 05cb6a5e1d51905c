"""Button that opens the list of lessons."""

from explorer.translations import _
from explorer.web.widgets.widget import Widget, fill_template

HTML = """<button type="button" class="open" aria-expanded="false" title="{lessons_are}">{lessons}</button>
<div class="list" role="dialog" aria-label="{lessons}" hidden></div>"""


class LessonListButton(Widget):
    """A button that opens the list of lessons, each with the step where the user left it."""

    def __init__(self, **kwargs):
        words = {"lessons": _("Lessons"), "lessons_are": _("step by step, with questions that you answer first")}
        super().__init__(html=fill_template(HTML, **words), **kwargs)
