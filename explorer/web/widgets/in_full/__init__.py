"""From a step of the simple page to the full one."""

from typing import Any

from explorer.web.widgets.widget import Widget


class InFull(Widget):
    """A link to the place in the full page that goes further."""

    def __init__(self, **kwargs):
        super().__init__(html='<p class="in-full"></p>', **kwargs)

    @staticmethod
    def pack(words: str, look: dict[str, Any]) -> dict[str, Any]:
        """The widget's value.

        Args:
            look: the change of the selection that leads there.
        """
        return {"words": words, "look": look}
