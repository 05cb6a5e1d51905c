"""Full-screen player of a walkthrough."""

from explorer.translations import _
from explorer.web.widgets.widget import Widget, fill_template

HTML = """<section class="walk" role="dialog" aria-modal="true" aria-label="{walk}" hidden>
<h2 tabindex="-1"></h2>
<p class="says" aria-live="polite"></p>
<div class="drawing"></div>
<nav><button type="button" class="back" aria-label="{back}">←</button><span class="at"></span>
<button type="button" class="next">{next}</button><button type="button" class="leave">{leave}</button></nav>
</section>"""


class WalkthroughPlayer(Widget):
    """Player of a walkthrough's short segments, with a pause after each.

    There is no animation if the user prefers reduced motion.
    """

    def __init__(self, **kwargs):
        words = {"walk": _("step by step"), "back": _("Back"), "next": _("Go on (space)"), "leave": _("Leave (Esc)")}
        super().__init__(html=fill_template(HTML, **words), **kwargs)
