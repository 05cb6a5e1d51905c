"""A line below the prompt: how to end it better."""

from typing import Any

from explorer.web.widgets.widget import Widget


class Advice(Widget):
    """Shows a sentence and a better prompt; nothing where there is none.

    Emits "apply" with the offered prompt as its value.
    """

    EMITS = ("apply",)

    def __init__(self, **kwargs):
        super().__init__("", html='<div class="advice" role="note"></div>', **kwargs)

    @staticmethod
    def pack(words: str = "", offer: str = "") -> dict[str, Any]:
        """The widget's value.

        Args:
            words: the sentence; "" gives up the line.
            offer: a better prompt.
        """
        return {"words": words, "offer": offer}
