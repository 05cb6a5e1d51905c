"""Drop-down lists of fields of the selection."""

from collections.abc import Sequence
from typing import Any

from explorer.views.select_fields import SelectField
from explorer.web.widgets.widget import Widget

MAX_OPTIONS = 100


class SelectFields(Widget):
    """A drop-down list for each field; it follows the selection."""

    def __init__(self, **kwargs):
        super().__init__(html='<div class="choosers"></div>', **kwargs)

    @staticmethod
    def pack(fields: Sequence[SelectField], all_of_them: bool = True) -> dict[str, Any]:
        """Return the fields with their options as (value, text) pairs.

        Fields with too many numbers for a list are typed instead, from 0 to `most`.

        Args:
            all_of_them: whether these are all fields; if not, the lists of the others stay as they are.
        """
        packed = [
            {"field": field.field, "title": field.title}
            | (
                {"most": len(field.options) - 1}
                if is_number_input(field)
                else {"options": list(map(list, field.options))}
            )
            | ({"free": True} if field.is_free else {})
            for field in fields
        ]
        return {"choices": packed, "all": all_of_them}


def is_number_input(field: SelectField) -> bool:
    return len(field.options) > MAX_OPTIONS and all(text == str(i) for i, (_, text) in enumerate(field.options))
