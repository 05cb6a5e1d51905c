"""The end of the text and the token to come, where there is little room."""

from collections.abc import Sequence
from typing import Any

from explorer.explain.notation import number
from explorer.language import _
from explorer.web.widgets.widget import Widget, with_words

LONGEST = 60  # characters of the text


def template() -> str:
    return with_words(
        """<button type="button" class="brief" title="{to_prompt}"></button>""",
        to_prompt=_("to the prompt"),
    )


class Brief(Widget):
    """What the text ends with and what Step would write; a click goes to the prompt."""

    def __init__(self, **kwargs):
        super().__init__(html=template(), **kwargs)

    @staticmethod
    def pack(tokens: Sequence[str], drawn: str, probability: float) -> dict[str, Any]:
        """The widget's value.

        Args:
            tokens: the text up to the selected one.
            drawn, probability: the token that the random number draws after it, and what that is drawn with.
        """
        return {"text": "".join(tokens)[-LONGEST:], "next": drawn, "probability": number(probability)}
