"""Choosing parts of the selection from lists."""

from collections.abc import Sequence
from typing import Any

from explorer.components.widget import Widget
from explorer.views.choices import Choice


class Choosers(Widget):
    """A drop-down list a field; it follows the selection, however that was changed."""

    def __init__(self, **kwargs):
        super().__init__(html='<div class="choosers"></div>', **kwargs)

    @staticmethod
    def pack(choices: Sequence[Choice]) -> list[dict[str, Any]]:
        return [{"field": c.field, "title": c.title, "options": list(map(list, c.options))} for c in choices]
