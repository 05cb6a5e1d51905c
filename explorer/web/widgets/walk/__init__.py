"""Walkthroughs: the full-screen player, and the button that starts it."""

from explorer.translations import _
from explorer.web.widgets.html_widget import Widget, fill_template, json_attribute

PLAYER_HTML = """<section class="walk" role="dialog" aria-modal="true" aria-label="{walk}" hidden>
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

    kind = "walk"
    lazy = ""

    def __init__(self, **kwargs):
        words = {"walk": _("step by step"), "back": _("Back"), "next": _("Go on (space)"), "leave": _("Leave (Esc)")}
        super().__init__(html=fill_template(PLAYER_HTML, **words), **kwargs)


BUTTON_HTML = """<button type="button" class="walks" title="{walk_is}" data-walk="%s">{walk}</button>"""


class WalkthroughButton(Widget):
    """A button that starts a tab's walkthrough.

    Args:
        walk: name of the walkthrough (`explorer.analysis.walkthroughs`).
    """

    kind = "walkthrough_button"
    lazy = ""

    def __init__(self, walk: str, **kwargs):
        words = {"walk": _("▶ Step by step"), "walk_is": _("this very computation, bit by bit, with its numbers")}
        super().__init__(html=fill_template(BUTTON_HTML % json_attribute(walk), **words), **kwargs)
