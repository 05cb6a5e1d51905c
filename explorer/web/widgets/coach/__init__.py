"""A line below the prompt: what to look for, or how to end it better."""

from typing import Any

from explorer.web.widgets.widget import Widget

SHOWN = "attention-pattern"  # element id of the picture in which all that can be shown is seen


class Coach(Widget):
    """Shows a sentence and what can be done about it; nothing where there is none.

    Emits "apply" with the offered prompt as its value.
    """

    EMITS = ("apply",)

    def __init__(self, **kwargs):
        super().__init__("", html=f'<div class="coach" role="note" data-shown="{SHOWN}"></div>', **kwargs)

    @staticmethod
    def pack(words: str, look: dict[str, Any] | None = None, offer: str = "") -> dict[str, Any]:
        """The widget's value.

        Args:
            words: the sentence; "" gives up the line.
            look: the selection that shows what it speaks of.
            offer: a better prompt.
        """
        return {"words": words, "look": look, "offer": offer}
