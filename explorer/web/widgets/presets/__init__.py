"""Presets of the sampling settings."""

from collections.abc import Mapping
from typing import Any

from explorer.translations import _
from explorer.web.widgets.widget import Widget, escape_text, fill_template, json_attribute


class SamplingPresets(Widget):
    """A button for each preset; the one whose settings the state has is pressed.

    Args:
        presets: name -> its settings.
    """

    def __init__(self, presets: Mapping[str, Mapping[str, Any]], **kwargs):
        buttons = (
            f'<button type="button" data-settings="{json_attribute(dict(settings))}">{escape_text(name)}</button>'
            for name, settings in presets.items()
        )
        group = fill_template('<div class="presets" role="group" aria-label="{presets}">', presets=_("presets"))
        super().__init__(html=f"{group}{''.join(buttons)}</div>", **kwargs)
