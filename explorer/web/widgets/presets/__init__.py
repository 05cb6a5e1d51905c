"""Settings in plain words."""

from collections.abc import Mapping
from html import escape
from typing import Any

from explorer.web.widgets.widget import Widget, attribute


class Presets(Widget):
    """A button a preset; the one whose settings the state has is pressed. Emits "choose" when a click changed them.

    Args:
        presets: name -> the settings it makes.
    """

    def __init__(self, presets: Mapping[str, Mapping[str, Any]], **kwargs):
        buttons = (
            f'<button type="button" data-settings="{attribute(dict(settings))}">{escape(name)}</button>'
            for name, settings in presets.items()
        )
        super().__init__(
            html=f'<div class="presets" role="group" aria-label="presets">{"".join(buttons)}</div>', **kwargs
        )
