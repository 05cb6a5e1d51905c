"""A computation gone through bit by bit, on the whole screen."""

from explorer.language import _
from explorer.web.widgets.widget import Widget, with_words

HTML = """<section class="walk" role="dialog" aria-modal="true" aria-label="{walk}" hidden>
<h2 tabindex="-1"></h2>
<p class="says" aria-live="polite"></p>
<div class="drawing"></div>
<nav><button type="button" class="back" aria-label="{back}">←</button><span class="at"></span>
<button type="button" class="next">{next}</button><button type="button" class="leave">{leave}</button></nav>
</section>"""


class Walk(Widget):
    """Short segments with a pause after each; where less motion is asked for, nothing moves."""

    def __init__(self, **kwargs):
        words = {"walk": _("step by step"), "back": _("Back"), "next": _("Go on (space)"), "leave": _("Leave (Esc)")}
        super().__init__(html=with_words(HTML, **words), **kwargs)
