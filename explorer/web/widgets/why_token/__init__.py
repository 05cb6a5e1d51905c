"""Why the explained token was predicted, told where somebody asks."""

from collections.abc import Iterable
from typing import Any

from explorer.language import _
from explorer.lessons.why import Clause
from explorer.web.widgets.widget import Widget, with_words

HTML = """<button type="button" class="asked" aria-expanded="false">{asked}</button>
<p class="clauses" hidden></p>"""


class WhyToken(Widget):
    """A button that opens the clauses, each of which leads to the picture that shows it."""

    def __init__(self, **kwargs):
        super().__init__(html=with_words(HTML, asked=_("Why this token?")), **kwargs)

    @staticmethod
    def pack(clauses: Iterable[Clause]) -> list[dict[str, Any]]:
        """The widget's value."""
        return [{"words": clause.words, "look": clause.look, "picture": clause.picture} for clause in clauses]
