"""Two lists of prompts that define a direction."""

from typing import Any

from explorer.analysis.steering import decode_prompt_lists
from explorer.state.interventions import DirectionSpec
from explorer.tracing.trace import Trace
from explorer.translations import _
from explorer.web.widgets.widget import Widget, fill_template

LINE_BREAK = "↵"  # within a prompt, as in the strip of tokens


class DirectionPromptLists(Widget):
    """Two text boxes with a prompt a line, initialised with the lists of the current direction."""

    def __init__(self, **kwargs):
        html = fill_template(
            '<details class="lists"><summary>{title}</summary><p>{text}</p><div class="two">'
            '<label><span>{towards}</span><textarea rows="5" spellcheck="false" maxlength="10000"></textarea></label>'
            '<label><span>{away}</span><textarea rows="5" spellcheck="false" maxlength="10000"></textarea></label>'
            '</div><button type="button"></button> <span class="error" role="status"></span></details>',
            title=_("A direction of your own: two lists of prompts"),
            text=_(
                "Prompts that differ in one thing, one a line, with ↵ for a line break in it: the direction goes from "
                "the mean of the stream over the second list to that over the first."
            ),
            towards=_("prompts that have it"),
            away=_("prompts that have it not"),
        )
        super().__init__(html=html, **kwargs)

    @staticmethod
    def pack(trace: Trace, recipe: DirectionSpec, layer: int) -> dict[str, Any] | None:
        """Return the widget's value; None if the tokenizer is unknown.

        Args:
            recipe: spec of the current direction.
            layer: after which the means would be computed.
        """
        if not trace.token_bytes:
            return None
        lists = decode_prompt_lists(trace, recipe) or ([], [])
        return {
            "lists": ["\n".join(text.replace("\n", LINE_BREAK) for text in prompts) for prompts in lists],
            "make": _("Take their means after layer {layer}", layer=layer),
        }


def split_prompts(text: str) -> list[str]:
    """Return the prompts of a text box, without empty lines."""
    return [line.replace(LINE_BREAK, "\n") for line in text.splitlines() if line.strip()]
