"""Playback of the generation, token by token."""

from collections.abc import Sequence
from typing import Any

from explorer.translations import _
from explorer.web.widgets.widget import Widget, fill_template


def html_template() -> str:
    return fill_template(
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


class GenerationPlayer(Widget):
    """Selects the tokens before each generated one, one by one, so that all views replay the generation."""

    def __init__(self, **kwargs):
        super().__init__(html=html_template(), **kwargs)

    @staticmethod
    def pack(tokens: Sequence[str], num_prompt: int, num_generated: int) -> dict[str, Any]:
        """Return the widget's value.

        Args:
            tokens: texts of the tokens that the model sees.
            num_prompt: how many of them belong to the prompt.
            num_generated: number of generated tokens, including those that the model no longer sees.
        """
        first = max(0, num_prompt - 1)  # after it the first token was chosen whose choice can be seen
        visible_tokens = list(tokens[first:])
        return {"first": first, "tokens": visible_tokens, "unseen": num_generated - len(visible_tokens) + 1}
