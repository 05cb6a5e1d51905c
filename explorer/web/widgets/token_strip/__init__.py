"""The prompt and what was generated, token by token."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from explorer.analysis.shades import SHADES
from explorer.language import _, look_up
from explorer.web.widgets.widget import Widget, as_text, with_words


class TokenStrip(Widget):
    """Tokens as chips, shaded by a number that a list chooses; a click or the arrow keys select one as the query.

    Args:
        run: whose they are, "a" or "b". Of two runs both are shaded by what they are surprised by more than the other.
    """

    def __init__(self, run: str = "a", **kwargs):
        options = "".join(
            f'<option value="{name}">{as_text(look_up(shade.words))}</option>' for name, shade in SHADES.items()
        )
        html = with_words(
            f'<div class="tokens" data-run="{run}">'
            '<div class="strip" role="listbox" aria-label="{tokens}" '
            'aria-orientation="horizontal"></div><label>{colour} <select>',
            tokens=_("Tokens of the prompt and of its continuation") if run == "a" else _("Tokens of B"),
            colour=_("colour"),
        )
        parts = with_words(
            '<p class="parts" hidden>{told}</p>',
            told=_("\\x and two digits stand for a byte: a part of a character that takes several tokens."),
        )
        begun = with_words(
            '<label class="beginning" title="{told}" hidden><input type="checkbox"> <span></span></label>',
            told=_("This model’s tokenizer puts it before every text; without it the model may go on otherwise."),
        )
        super().__init__(html=f"{html}{options}</select></label>{begun}{parts}</div>", **kwargs)

    @staticmethod
    def pack(
        tokens: Sequence[str],
        shades: Mapping[str, tuple[np.ndarray, list[str]]],
        num_prompt: int,
        earlier: int,
        beginning: tuple[str, bool] = ("", False),
    ) -> dict[str, Any]:
        """The widget's value.

        Args:
            tokens: texts of the tokens the model sees.
            shades: name -> part of the full colour (T,), 0 to 1, or of a signed number −1 to 1, and the number in
                words, of each; of one alone nothing is to be chosen.
            num_prompt: how many of them belong to the prompt; the others were generated.
            earlier: tokens before these that the model does not see.
            beginning: what is to stand before every text, "" for nothing, and whether it does.
        """
        packed = {
            name: {"shares": np.round(shares, 3).tolist(), "words": words} for name, (shares, words) in shades.items()
        }
        return {
            "tokens": list(tokens),
            "shades": packed,
            "num_prompt": num_prompt,
            "earlier": earlier,
            "beginning": list(beginning),
        }
