"""Compact status for small screens: the end of the text and the next token."""

from collections.abc import Sequence
from typing import Any

from explorer.explain.notation import format_number
from explorer.translations import _
from explorer.web.widgets.widget import Widget, fill_template

MAX_CHARACTERS = 60  # characters of the text


def html_template() -> str:
    return fill_template(
        """<button type="button" class="brief" title="{to_prompt}"></button>""",
        to_prompt=_("to the prompt"),
    )


class PromptTail(Widget):
    """The end of the text and the token that Step would generate; a click goes to the prompt."""

    def __init__(self, **kwargs):
        super().__init__(html=html_template(), **kwargs)

    @staticmethod
    def pack(tokens: Sequence[str], sampled_token: str, probability: float) -> dict[str, Any]:
        """Return the widget's value.

        Args:
            tokens: the text up to the selected token.
            sampled_token, probability: the token sampled after it, and its probability.
        """
        return {
            "text": "".join(tokens)[-MAX_CHARACTERS:],
            "next": sampled_token,
            "probability": format_number(probability),
        }
