"""Explanation of the selected prediction, shown on request."""

from collections.abc import Iterable
from typing import Any

from explorer.lessons.prediction_explanation import ExplanationSentence
from explorer.web.widgets.widget import Widget, fill_template

HTML = """<button type="button" class="asked" aria-expanded="false" data-field="{field}">{asked}</button>
<p class="clauses" hidden></p>"""


class ExplanationButton(Widget):
    """A button that shows an explanation's clauses, each with a link to its figure.

    Args:
        field: field of the state that holds "open" while it is shown.
        question: text of the button.
    """

    def __init__(self, *, field: str = "why", question: str = "", **kwargs):
        super().__init__(html=fill_template(HTML, field=field, asked=question), **kwargs)

    @staticmethod
    def pack(clauses: Iterable[ExplanationSentence]) -> list[dict[str, Any]]:
        """Return the widget's value."""
        return [
            {"words": clause.text, "look": clause.selection_change, "picture": clause.figure_id} for clause in clauses
        ]
