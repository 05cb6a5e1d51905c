"""Button that starts a walkthrough."""

from explorer.translations import _
from explorer.web.widgets.widget import Widget, fill_template, json_attribute

HTML = """<button type="button" class="walks" title="{walk_is}" data-walk="%s">{walk}</button>"""


class WalkthroughButton(Widget):
    """A button that starts a tab's walkthrough.

    Args:
        walk: name of the walkthrough (`explorer.explain.walkthroughs`).
    """

    def __init__(self, walk: str, **kwargs):
        words = {"walk": _("▶ Step by step"), "walk_is": _("this very computation, bit by bit, with its numbers")}
        super().__init__(html=fill_template(HTML % json_attribute(walk), **words), **kwargs)
