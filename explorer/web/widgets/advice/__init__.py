"""Advice below the prompt on how to end it."""

from typing import Any

from explorer.web.widgets.widget import Widget


class PromptAdviceLine(Widget):
    """A line with a sentence and a better prompt; hidden if there is none."""

    def __init__(self, **kwargs):
        super().__init__(html='<div class="advice" role="note"></div>', **kwargs)

    @staticmethod
    def pack(text: str = "", offer: str = "") -> dict[str, Any]:
        """Return the widget's value.

        Args:
            text: the sentence; "" hides the line.
            offer: a better prompt.
        """
        return {"words": text, "offer": offer}
