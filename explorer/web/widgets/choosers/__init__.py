"""Choosing parts of the selection from lists."""

from collections.abc import Sequence
from typing import Any

from explorer.views.choices import Choice
from explorer.web.widgets.widget import Widget

LONGEST_LIST = 100


class Choosers(Widget):
    """A drop-down list a field; it follows the selection, however that was changed."""

    def __init__(self, **kwargs):
        super().__init__(html='<div class="choosers"></div>', **kwargs)

    @staticmethod
    def pack(choices: Sequence[Choice], all_of_them: bool = True) -> dict[str, Any]:
        """Lists as (value, text) pairs; numbers too many for a list are typed instead, from 0 to `most`.

        Args:
            all_of_them: or else the lists of other fields stay as they are.
        """
        packed = [
            {"field": choice.field, "title": choice.title}
            | ({"most": len(choice.options) - 1} if is_typed(choice) else {"options": list(map(list, choice.options))})
            | ({"free": True} if choice.is_free else {})
            for choice in choices
        ]
        return {"choices": packed, "all": all_of_them}


def is_typed(choice: Choice) -> bool:
    return len(choice.options) > LONGEST_LIST and all(text == str(i) for i, (_, text) in enumerate(choice.options))
