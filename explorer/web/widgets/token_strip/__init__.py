"""Strip of the text's tokens."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from explorer.analysis.token_shading import SHADES
from explorer.translations import _, translate
from explorer.web.widgets.widget import Widget, escape_text, fill_template


class TokenStrip(Widget):
    """Tokens as chips, shaded by a quantity chosen from a list; a click or the arrow keys select one as the query.

    Args:
        run: "a" or "b". With two runs, both are shaded by the difference of their surprisals.
    """

    def __init__(self, run: str = "a", **kwargs):
        options = "".join(
            f'<option value="{name}">{escape_text(translate(shade.description))}</option>'
            for name, shade in SHADES.items()
        )
        html = fill_template(
            f'<div class="tokens" data-run="{run}">'
            '<div class="strip" role="listbox" aria-label="{tokens}" '
            'aria-orientation="horizontal"></div><label>{colour} <select>',
            tokens=_("Tokens of the prompt and of its continuation") if run == "a" else _("Tokens of B"),
            colour=_("colour"),
        )
        parts = fill_template(
            '<p class="parts" hidden>{told}</p>',
            told=_("\\x and two digits stand for a byte: a part of a character that takes several tokens."),
        )
        begun = fill_template(
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
        """Return the widget's value.

        Args:
            tokens: texts of the tokens that the model sees.
            shades: name -> fraction of the full colour (T,), 0 to 1, or -1 to 1 if it is signed, and each number as
                text; with one shading there is no list.
            num_prompt: how many of them belong to the prompt; the others were generated.
            earlier: number of tokens before these that the model does not see.
            beginning: BOS text, "" for none, and whether the prompt begins with it.
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
