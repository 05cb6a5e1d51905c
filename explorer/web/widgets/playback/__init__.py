"""Going through the continuation again, step by step."""

from collections.abc import Sequence
from typing import Any

from explorer.language import _
from explorer.web.widgets.widget import Widget, with_words


def template() -> str:
    return with_words(
        """<div class="playback" role="group" aria-label="{playback}">
  <button type="button" class="back" title="{one_back}" aria-label="{back}">◀</button>
  <button type="button" class="play" title="{play_is}" aria-label="{play}">{play_shown}</button>
  <button type="button" class="forward" title="{one_forward}" aria-label="{forward}">▶</button>
  <input type="range" min="0" aria-label="{step}">
</div>
<output class="told" aria-live="off"></output>""",
        playback=_("Playback of the continuation"),
        one_back=_("one step back"),
        back=_("back"),
        play_is=_("play, two steps a second"),
        play=_("play"),
        play_shown=_("Play"),
        one_forward=_("one step forward"),
        forward=_("forward"),
        step=_("step of the continuation"),
    )


class Playback(Widget):
    """Selects the tokens that the generated ones were chosen after, one by one, and so moves all views along."""

    def __init__(self, **kwargs):
        super().__init__(html=template(), **kwargs)

    @staticmethod
    def pack(tokens: Sequence[str], num_prompt: int, num_generated: int) -> dict[str, Any]:
        """The widget's value.

        Args:
            tokens: texts of the tokens the model sees.
            num_prompt: how many of them belong to the prompt.
            num_generated: tokens generated in all, with those it sees no more.
        """
        first = max(0, num_prompt - 1)  # after it the first token was chosen whose choice can be seen
        shown = list(tokens[first:])
        return {"first": first, "tokens": shown, "unseen": num_generated - len(shown) + 1}
