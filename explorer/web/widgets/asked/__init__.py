"""A question about the chosen prediction, which is answered where somebody asks it."""

from collections.abc import Iterable
from typing import Any

from explorer.lessons.why import Clause
from explorer.web.widgets.widget import Widget, with_words

HTML = """<button type="button" class="asked" aria-expanded="false" data-field="{field}">{asked}</button>
<p class="clauses" hidden></p>"""


class Asked(Widget):
    """A button that opens the clauses, each of which leads to the picture that shows it.

    Args:
        field: of the state, which holds whether it is "open".
        words: the question.
    """

    def __init__(self, *, field: str = "why", words: str = "", **kwargs):
        super().__init__(html=with_words(HTML, field=field, asked=words), **kwargs)

    @staticmethod
    def pack(clauses: Iterable[Clause]) -> list[dict[str, Any]]:
        """The widget's value."""
        return [{"words": clause.words, "look": clause.look, "picture": clause.picture} for clause in clauses]
