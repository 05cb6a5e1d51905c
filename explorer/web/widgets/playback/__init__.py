"""Going through the continuation again, step by step."""

from collections.abc import Sequence
from typing import Any

from explorer.web.widgets.widget import Widget

HTML = """<div class="playback" role="group" aria-label="Playback of the continuation">
  <button type="button" class="back" title="one step back" aria-label="back">◀</button>
  <button type="button" class="play" title="play, two steps a second" aria-label="play">Play</button>
  <button type="button" class="forward" title="one step forward" aria-label="forward">▶</button>
  <input type="range" min="0" aria-label="step of the continuation">
</div>
<output class="told" aria-live="off"></output>"""


class Playback(Widget):
    """Selects the tokens that the generated ones were chosen after, one by one, and so moves all views along."""

    def __init__(self, **kwargs):
        super().__init__(html=HTML, **kwargs)

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
