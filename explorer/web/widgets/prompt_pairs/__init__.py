"""Pairs of prompts for patching."""

from collections.abc import Sequence

from explorer.lessons.prompt_pairs import PromptPair
from explorer.translations import _, translate
from explorer.web.widgets.widget import Widget, escape_text, fill_template


class PromptPairButtons(Widget):
    """A button for each pair of prompts; it loads the corrupted one as A and the clean one as B."""

    def __init__(self, pairs: Sequence[PromptPair], **kwargs):
        buttons = (
            fill_template(
                '<button type="button" data-pair="{place}" title="{both}">{name}</button>',
                place=str(index),
                both=_("B, clean: “{clean}” A, corrupted: “{corrupted}”", clean=pair.clean, corrupted=pair.corrupted),
                name=translate(pair.name),
            )
            for index, pair in enumerate(pairs)
        )
        begin = escape_text(_("begin with"))
        group = fill_template('<div class="pairs" role="group" aria-label="{pairs}">', pairs=_("pairs of prompts"))
        super().__init__(html=f"{group}<span>{begin}</span>{''.join(buttons)}</div>", **kwargs)
