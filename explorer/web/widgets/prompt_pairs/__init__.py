"""Pairs of prompts to begin patching with."""

from collections.abc import Sequence

from explorer.language import _, look_up
from explorer.lessons.prompt_pairs import PromptPair
from explorer.web.widgets.widget import Widget, as_text, with_words


class PromptPairs(Widget):
    """A button a pair: its corrupted prompt becomes A, its clean one B."""

    def __init__(self, pairs: Sequence[PromptPair], **kwargs):
        buttons = (
            with_words(
                '<button type="button" data-pair="{place}" title="{both}">{name}</button>',
                place=str(place),
                both=_("B, clean: “{clean}” A, corrupted: “{corrupted}”", clean=pair.clean, corrupted=pair.corrupted),
                name=look_up(pair.name),
            )
            for place, pair in enumerate(pairs)
        )
        begin = as_text(_("begin with"))
        group = with_words('<div class="pairs" role="group" aria-label="{pairs}">', pairs=_("pairs of prompts"))
        super().__init__(html=f"{group}<span>{begin}</span>{''.join(buttons)}</div>", **kwargs)
