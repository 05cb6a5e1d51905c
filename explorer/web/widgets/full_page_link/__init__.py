"""Link from a step of the simple page to the full page."""

from typing import Any

from explorer.web.widgets.widget import Widget


class FullPageLink(Widget):
    """A link to the view of the full page that shows more."""

    def __init__(self, **kwargs):
        super().__init__(html='<p class="in-full"></p>', **kwargs)

    @staticmethod
    def pack(text: str, change: dict[str, Any]) -> dict[str, Any]:
        """Return the widget's value.

        Args:
            change: the change of the selection that leads there.
        """
        return {"words": text, "look": change}
