"""Settings in plain words."""

from collections.abc import Mapping
from typing import Any

from explorer.language import _
from explorer.web.widgets.widget import Widget, as_text, attribute, with_words


class Presets(Widget):
    """A button a preset; the one whose settings the state has is pressed. Emits "choose" when a click changed them.

    Args:
        presets: name -> the settings it makes.
    """

    EMITS = ("choose",)

    def __init__(self, presets: Mapping[str, Mapping[str, Any]], **kwargs):
        buttons = (
            f'<button type="button" data-settings="{attribute(dict(settings))}">{as_text(name)}</button>'
            for name, settings in presets.items()
        )
        group = with_words('<div class="presets" role="group" aria-label="{presets}">', presets=_("presets"))
        super().__init__(html=f"{group}{''.join(buttons)}</div>", **kwargs)
