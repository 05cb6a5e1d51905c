"""Two lists of prompts to make a direction of."""

from typing import Any

from explorer.analysis.steering import texts_of
from explorer.language import _
from explorer.state.interventions import Recipe
from explorer.tracing.trace import Trace
from explorer.web.widgets.widget import Widget, with_words

LINE_BREAK = "↵"  # within a prompt, as in the strip of tokens


class PromptLists(Widget):
    """Two boxes of text, a prompt a line, which begin with the lists of the direction that is looked at."""

    def __init__(self, **kwargs):
        html = with_words(
            '<details class="lists"><summary>{title}</summary><p>{words}</p><div class="two">'
            '<label><span>{towards}</span><textarea rows="5" spellcheck="false" maxlength="10000"></textarea></label>'
            '<label><span>{away}</span><textarea rows="5" spellcheck="false" maxlength="10000"></textarea></label>'
            '</div><button type="button"></button> <span class="error" role="status"></span></details>',
            title=_("A direction of your own: two lists of prompts"),
            words=_(
                "Prompts that differ in one thing, one a line, with ↵ for a line break in it: the direction goes from "
                "the mean of the stream over the second list to that over the first."
            ),
            towards=_("prompts that have it"),
            away=_("prompts that have it not"),
        )
        super().__init__(html=html, **kwargs)

    @staticmethod
    def pack(trace: Trace, recipe: Recipe, layer: int) -> dict[str, Any] | None:
        """The widget's value; None where the tokenizer is unknown.

        Args:
            recipe: of the direction that is looked at.
            layer: after which the mean is to be taken.
        """
        if not trace.token_bytes:
            return None
        lists = texts_of(trace, recipe) or ([], [])
        return {
            "lists": ["\n".join(text.replace("\n", LINE_BREAK) for text in each) for each in lists],
            "make": _("Take their means after layer {layer}", layer=layer),
        }


def prompts_in(text: str) -> list[str]:
    """Of a box's text, but for empty lines."""
    return [line.replace(LINE_BREAK, "\n") for line in text.splitlines() if line.strip()]
