"""The way to a walk through a tab's computation."""

from explorer.language import _
from explorer.web.widgets.widget import Widget, attribute, with_words

HTML = """<button type="button" class="walks" title="{walk_is}" data-walk="%s">{walk}</button>"""


class WalkButton(Widget):
    """A button that has a computation gone through bit by bit.

    Args:
        walk: which one (`explorer.explain.walks`).
    """

    def __init__(self, walk: str, **kwargs):
        words = {"walk": _("▶ Step by step"), "walk_is": _("this very computation, bit by bit, with its numbers")}
        super().__init__(html=with_words(HTML % attribute(walk), **words), **kwargs)
