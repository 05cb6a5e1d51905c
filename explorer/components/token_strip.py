"""The prompt and what was generated, token by token."""

import math
from collections.abc import Sequence
from typing import Any

from explorer.components.widget import Widget


class TokenStrip(Widget):
    """Tokens as chips, shaded by surprisal; a click or the arrow keys select one as the query."""

    def __init__(self, **kwargs):
        html = (
            '<div class="strip" role="listbox" aria-label="Tokens of the prompt and of its continuation" '
            'aria-orientation="horizontal"></div>'
        )
        super().__init__({}, html=html, **kwargs)

    @staticmethod
    def pack(tokens: Sequence[str], surprisal: Sequence[float], num_prompt: int, earlier: int) -> dict[str, Any]:
        """The widget's value.

        Args:
            tokens: texts of the tokens the model sees.
            surprisal: bits, NaN where there is none.
            num_prompt: how many of them belong to the prompt; the others were generated.
            earlier: tokens before these that the model does not see.
        """
        bits = [None if math.isnan(value) else round(float(value), 2) for value in surprisal]
        return {"tokens": list(tokens), "surprisal": bits, "num_prompt": num_prompt, "earlier": earlier}
